"""Tests that a request to very many partitions seals few segments in its event."""

from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.storage.rolling import SEALED_AN_EVENT
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import batch, create_topic

PARTITIONS = 3 * SEALED_AN_EVENT
SEGMENT_MS = 5_000


def produce(talk: Dialogue, timestamp_ms: int) -> None:
    """Append a record to every partition in one request."""
    content = bytes(batch(start_ms=timestamp_ms))
    data = [PartitionProduceData(index=n, records=content) for n in range(PARTITIONS)]
    named = TopicProduceData(name="orders", partition_data=data)
    answer = talk.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[named]), 9)
    codes = [p.error_code for t in answer.responses for p in t.partition_responses]
    assert codes == [0] * PARTITIONS


def sealed(talk: Dialogue) -> int:
    """Return how many segments of all partitions are sealed."""
    return sum(len(partition.log.segments) - 1 for partition in talk.node.partitions.values())


def test_old_segments_are_sealed_over_several_events(talk: Dialogue) -> None:
    create_topic(talk, "orders", PARTITIONS, {"segment.ms": str(SEGMENT_MS)})
    produce(talk, START_MS)
    counts = []
    for number in range(1, 5):
        talk.pass_time(1)
        produce(talk, START_MS + SEGMENT_MS + number)
        counts.append(sealed(talk))
    assert counts == [SEALED_AN_EVENT, 2 * SEALED_AN_EVENT, PARTITIONS, PARTITIONS]
    ends = {partition.log.end_offset for partition in talk.node.partitions.values()}
    assert ends == {5}
