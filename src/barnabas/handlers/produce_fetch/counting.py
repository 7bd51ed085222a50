"""Adds up what Fetch responses and refused batches are about, where requests are counted."""

from collections.abc import Mapping, Sequence

from barnabas.handlers.context import RequestContext
from barnabas.node.node import Node
from barnabas.node.topic_traffic import Traffic
from barnabas.protocol.fetch import FetchResult
from barnabas.protocol.produce import PartitionResult

TopicKey = str | bytes


def count_fetched(
    node: Node,
    traffic: Traffic,
    topics: Mapping[TopicKey, Sequence[FetchResult]],
    context: RequestContext,
) -> None:
    """Count the partitions and the bytes of a Fetch response; remember its first error."""
    is_replica = context.caller.listener.is_peer
    for key, results in topics.items():
        numbers = traffic.named(key, node.image)
        size = 0
        for result in results:
            if result.records is not None:
                size += result.records.length
            if result.error_code:
                context.error_code = context.error_code or result.error_code
                numbers.failed_fetches += not is_replica
        context.partition_count += len(results)
        if is_replica:
            numbers.replication_bytes_out += size
        else:
            numbers.bytes_out += size
            numbers.fetches += len(results)


def count_failed(
    node: Node,
    traffic: Traffic,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    context: RequestContext,
) -> None:
    """Count the batches of a Produce request that have errors; remember the first error."""
    for key, results in topics:
        failed = [result.error_code for result in results if result.error_code]
        if failed:
            context.error_code = context.error_code or failed[0]
            traffic.named(key, node.image).failed_produces += len(failed)
