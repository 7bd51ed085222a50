"""Tests producers that send many small batches at once: every message is stored once.

confluent-kafka has no idempotence by default and up to a million requests in flight, so that a
broken connection shows as duplicates.
"""

from collections import Counter
from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.loads.topic_reading import committed_records

MESSAGES = 20_000
QUOTA = "100KB"


def produce(bootstrap: str, config: Mapping[str, object]) -> Counter[str]:
    """Send all messages to one partition; return the number of each outcome."""
    ends: Counter[str] = Counter()

    def ended(error: KafkaError | None, _: Message) -> None:
        ends["delivered" if error is None else error.name()] += 1

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **config})
    for number in range(MESSAGES):
        producer.produce("t", b"%d" % number, partition=0, on_delivery=ended)
        producer.poll(0)
    assert producer.flush(120) == 0
    return ends


def end_offset(bootstrap: str) -> int:
    """Return the readable end of the partition: with acks=1, it may be behind the acks."""
    place = TopicPartition("t", 0)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    offset: int = admin.list_offsets({place: OffsetSpec.latest()})[place].result(30).offset
    return offset


@pytest.mark.parametrize("quota", [None, QUOTA])
@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize("batch", [{"batch.num.messages": 1}, {"batch.num.messages": 10}, {}])
def test_every_message_is_stored_once(
    batch: Mapping[str, object], acks: str, quota: str | None
) -> None:
    settings = {} if quota is None else {"performance.producer_quota": quota}
    with Broker(settings=settings) as broker:
        ends = produce(broker.bootstrap, {"acks": acks, **batch})
        eventually(lambda: end_offset(broker.bootstrap) >= MESSAGES)
        stored = [seen.value for seen in committed_records(broker.bootstrap, "t")]
    assert ends == {"delivered": MESSAGES}
    assert stored == [b"%d" % number for number in range(MESSAGES)]
