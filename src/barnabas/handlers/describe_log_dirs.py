"""DescribeLogDirs (key 35), versions 1 to 5."""

from collections import defaultdict

from barnabas.handlers.context import RequestContext
from barnabas.model.pending import Pending
from barnabas.model.pieces import Work, in_pieces
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

PARTITIONS_AT_ONCE = 500
"""How many partitions are described in one event."""


def handle(
    node: Node, request: DescribeLogDirsRequest, context: RequestContext
) -> Pending[DescribeLogDirsResponse]:
    """Say how large the logs are; no topics asked for is all of them."""
    wanted = None
    if request.topics is not None:
        wanted = {(t.topic, index) for t in request.topics for index in t.partitions}
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for name, partition in node.partitions.items():
        if wanted is None or name in wanted:
            by_topic[name.topic].append(partition)
    work = _encoded_topics(by_topic, context.version)
    encode = encoder(DescribeLogDirsResult, context.version)

    def response(topics: Encoded) -> DescribeLogDirsResponse:
        folder = node.settings.broker.data_dir
        total, usable = node.disk.space(folder)
        result = DescribeLogDirsResult(
            log_dir=folder, topics=topics, total_bytes=total, usable_bytes=usable
        )
        return DescribeLogDirsResponse(results=Encoded([encode(result)]))

    return in_pieces(node.timers, work, PARTITIONS_AT_ONCE).map(response)


def _encoded_topics(by_topic: dict[str, list[Partition]], version: int) -> Work[Encoded]:
    encode_topic = encoder(DescribeLogDirsTopic, version)
    encode_partition = encoder(DescribeLogDirsPartition, version)
    topics = Encoded()
    for name, found in by_topic.items():
        partitions = Encoded()
        for partition in found:
            described = DescribeLogDirsPartition(
                partition_index=partition.name.partition, partition_size=partition.log.size
            )
            partitions.append(encode_partition(described))
            yield 1
        topics.append(encode_topic(DescribeLogDirsTopic(name=name, partitions=partitions)))
        yield 1
    return topics
