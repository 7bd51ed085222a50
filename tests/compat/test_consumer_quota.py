"""A librdkafka consumer under a quota: it gets what the quota allows, over one connection."""

from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.node.quotas import Quota
from barnabas.testing.broker import Broker

QUOTA = 1024 * 1024
BATCH_BYTES = 50_000
MESSAGES = 60
PATIENCE_S = 60.0


class Served(NamedTuple):
    """An answer to a fetch, as the quota saw it."""

    size: int
    now_ms: int


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Served]:
    found: list[Served] = []
    use = Quota.use

    def record(quota: Quota, client_id: str | None, size: int, now_ms: int) -> int:
        if size:
            found.append(Served(size, now_ms))
        return use(quota, client_id, size, now_ms)

    monkeypatch.setattr(Quota, "use", record)
    return found


def fill(bootstrap: str) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "batch.num.messages": 1, "client.id": "filler"}
    )
    for number in range(MESSAGES):
        producer.produce("t", number.to_bytes(4, "big") + bytes(BATCH_BYTES), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def read(bootstrap: str) -> list[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": 50_000_000,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[int] = []
    while len(found) < MESSAGES:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        found.append(int.from_bytes(message.value()[:4], "big"))
    consumer.close()
    return found


def test_a_consumer_gets_what_its_quota_allows(served: list[Served]) -> None:
    with Broker(settings={"performance.consumer_quota": QUOTA}) as broker:
        fill(broker.bootstrap)
        assert read(broker.bootstrap) == list(range(MESSAGES))
    assert sum(each.size for each in served) >= MESSAGES * BATCH_BYTES
    assert max(each.size for each in served) <= QUOTA
    first_ms, total = served[0].now_ms, 0
    for each in served:
        # Nothing is served before what was served earlier is paid for.
        assert total <= QUOTA + QUOTA * (each.now_ms - first_ms) / 1000
        total += each.size
