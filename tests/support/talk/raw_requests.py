"""Produce and ListOffsets requests for a `RawClient`, with defaults for irrelevant fields."""

from collections.abc import Sequence

from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import Record, build
from barnabas.testing.raw_client import RawClient

PRODUCE_VERSION = 9
TIMEOUT_MS = 30_000


def produce_request(topic: str, batch: bytes, partition: int = 0) -> ProduceRequest:
    """Return a request that waits for all in-sync replicas."""
    data = PartitionProduceData(index=partition, records=batch)
    wanted = TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[wanted])


def produce(client: RawClient, topic: str, records: Sequence[Record], partition: int = 0) -> int:
    """Send one batch; return the error code of its partition."""
    request = produce_request(topic, bytes(build(records)), partition)
    (answer,) = client.ask(request, PRODUCE_VERSION, ProduceResponse).responses
    return answer.partition_responses[0].error_code


def list_offsets_request(topic: str, timestamp: int, partitions: int = 1) -> ListOffsetsRequest:
    """Return the offset of a time in each of the first partitions of a topic."""
    wanted = [
        ListOffsetsPartition(partition_index=number, timestamp=timestamp)
        for number in range(partitions)
    ]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
