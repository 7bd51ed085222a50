"""Stock clients under client quotas: throttled to their rate, on the fast path, and losing nothing.

Bounds are computed from the bytes that the broker charged and from its own clock.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.admin.access.quota_admin import Quotas, entity_from
from barnabas.handlers.produce_fetch.produce_again import ProduceShape
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.security.buckets import WINDOW_S
from barnabas.security.client_quotas import ClientQuota, QuotaKind
from barnabas.testing.broker import Broker
from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually
from barnabas.wire.addresses import split_address
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.link import Link

kafka = pytest.importorskip("kafka")

pytestmark = pytest.mark.compat

KIB = 1024
RATE = 100 * KIB
VALUE_BYTES = 20 * KIB
MESSAGES = 65
"""Ten seconds' worth is a megabyte; this is three tenths more."""
PATIENCE_S = 60.0


class Use(NamedTuple):
    """What was charged, and when."""

    amount: float
    now_ms: int
    pause_ms: int


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> dict[QuotaKind, list[Use]]:
    """Return what brokers in this process charge, by the kind of quota."""
    found: dict[QuotaKind, list[Use]] = {kind: [] for kind in QuotaKind}
    use = ClientQuota.use

    def record(quota: ClientQuota, kind: QuotaKind, amount: float, now_ms: int) -> int:
        pause_ms = use(quota, kind, amount, now_ms)
        if amount:
            found[kind].append(Use(amount, now_ms, pause_ms))
        return pause_ms

    monkeypatch.setattr(ClientQuota, "use", record)
    return found


@pytest.fixture
def fast_answers(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the answers that the fast path gave."""
    found: list[object] = []
    answer = ProduceShape.answer

    def record(
        shape: ProduceShape, frame: memoryview, prefix_bytes: int, number: int, now_ms: int
    ) -> object:
        given = answer(shape, frame, prefix_bytes, number, now_ms)
        if given is not None:
            found.append(given)
        return given

    monkeypatch.setattr(ProduceShape, "answer", record)
    return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def set_quota(bootstrap: str, key: str, value: float, user: str = "*default*") -> None:
    with Wire({"bootstrap.servers": bootstrap}) as wire:
        Quotas(wire).set(entity_from(user, None, None), {key: value})


def check_rate(uses: list[Use], rate: float) -> None:
    """Nothing is used before what was used earlier is paid for, and pauses are no longer."""
    first_ms, total = uses[0].now_ms, 0.0
    for each in uses:
        # The pause is up to a millisecond longer than needed.
        assert total <= rate * WINDOW_S + rate * (each.now_ms - first_ms + 1) / 1000
        total += each.amount
    owed = total - rate * WINDOW_S - rate * (uses[-1].now_ms - first_ms) / 1000
    assert uses[-1].pause_ms <= max(0, owed) * 1000 / rate + 2 * len(uses)


def produce_confluent(bootstrap: str) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "batch.num.messages": 1, "linger.ms": 0, "acks": 1}
    )
    for number in range(MESSAGES):
        producer.produce("t", number.to_bytes(4, "big") + bytes(VALUE_BYTES - 4), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def produce_python(bootstrap: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, batch_size=VALUE_BYTES, acks=1)
    sent = [
        producer.send("t", number.to_bytes(4, "big") + bytes(VALUE_BYTES - 4), partition=0)
        for number in range(MESSAGES)
    ]
    for each in sent:
        each.get(PATIENCE_S)
    producer.close()


def produce_asyncio(bootstrap: str) -> None:
    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, max_batch_size=2 * VALUE_BYTES, acks=1
        )
        await producer.start()
        for number in range(MESSAGES):
            value = number.to_bytes(4, "big") + bytes(VALUE_BYTES - 4)
            await producer.send_and_wait("t", value, partition=0)
        await producer.stop()

    asyncio.run(produce())


def consume(bootstrap: str, count: int) -> list[int]:
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
    while len(found) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        found.append(int.from_bytes((message.value() or b"")[:4], "big"))
    consumer.close()
    return found


@pytest.mark.parametrize("produce", [produce_confluent, produce_python, produce_asyncio])
def test_producers_keep_to_their_rate(
    broker: Broker,
    uses: dict[QuotaKind, list[Use]],
    fast_answers: list[object],
    produce: Callable[[str], None],
) -> None:
    set_quota(broker.bootstrap, "producer_byte_rate", RATE)
    produce(broker.bootstrap)
    charged = uses[QuotaKind.PRODUCE]
    assert sum(each.amount for each in charged) >= MESSAGES * VALUE_BYTES
    assert any(each.pause_ms for each in charged)
    check_rate(charged, RATE)
    # Of each connection the first request is learnt; kafka-python joins some batches.
    assert len(fast_answers) >= 0.5 * len(charged)
    assert consume(broker.bootstrap, MESSAGES) == list(range(MESSAGES))


def test_a_consumer_keeps_to_its_rate(broker: Broker, uses: dict[QuotaKind, list[Use]]) -> None:
    produce_confluent(broker.bootstrap)
    set_quota(broker.bootstrap, "consumer_byte_rate", RATE, user="ANONYMOUS")
    assert consume(broker.bootstrap, MESSAGES) == list(range(MESSAGES))
    charged = uses[QuotaKind.FETCH]
    assert sum(each.amount for each in charged) >= MESSAGES * VALUE_BYTES
    assert max(each.amount for each in charged) <= RATE * WINDOW_S
    check_rate(charged, RATE)


def test_the_settings_limit_clients_that_have_no_other_quota(
    uses: dict[QuotaKind, list[Use]], fast_answers: list[object]
) -> None:
    with Broker(settings={"performance.producer_quota": RATE}) as broker:
        produce_confluent(broker.bootstrap)
        assert consume(broker.bootstrap, MESSAGES) == list(range(MESSAGES))
    check_rate(uses[QuotaKind.PRODUCE], RATE)
    assert len(fast_answers) >= MESSAGES - 2


def test_a_quota_that_changes_under_load(broker: Broker, uses: dict[QuotaKind, list[Use]]) -> None:
    charged = uses[QuotaKind.PRODUCE]
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "linger.ms": 0}
    )
    sent = 0

    def send() -> bool:
        nonlocal sent
        producer.produce("t", sent.to_bytes(4, "big") + bytes(VALUE_BYTES - 4), partition=0)
        sent += 1
        producer.flush(PATIENCE_S)
        return True

    for _ in range(20):
        send()
    assert charged == [], "without quotas nothing is counted"
    set_quota(broker.bootstrap, "producer_byte_rate", RATE)
    eventually(lambda: send() and any(each.pause_ms for each in charged), PATIENCE_S)
    check_rate(charged, RATE)
    set_quota(broker.bootstrap, "producer_byte_rate", 1000 * RATE)
    before = len(charged)
    for _ in range(100):
        send()
    assert all(each.pause_ms == 0 for each in charged[before + 1 :])
    assert consume(broker.bootstrap, sent) == list(range(sent))


def test_time_of_the_event_loop_is_charged(
    broker: Broker, uses: dict[QuotaKind, list[Use]], monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[int] = []
    charge = ClientQuota.charge_time

    def record(quota: ClientQuota, duration_ns: int, now_ms: int) -> bool:
        charged.append(duration_ns)
        return charge(quota, duration_ns, now_ms)

    monkeypatch.setattr(ClientQuota, "charge_time", record)
    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "batch.num.messages": 1,
            "linger.ms": 0,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    set_quota(broker.bootstrap, "request_percentage", 0.01)
    sent = 0

    def send() -> bool:
        nonlocal sent
        producer.produce("t", sent.to_bytes(4, "big") + bytes(16), partition=0)
        sent += 1
        producer.flush(PATIENCE_S)
        return True

    eventually(lambda: send() and any(throttled), PATIENCE_S)
    assert max(throttled) <= 1.0, "a pause is a second at most"
    assert sum(charged) > 0.0001 * WINDOW_S * 1e9
    assert uses[QuotaKind.FETCH] == []
    with Wire({"bootstrap.servers": broker.bootstrap}) as wire:
        Quotas(wire).remove(entity_from("*default*", None, None), ["request_percentage"])
    assert consume(broker.bootstrap, sent) == list(range(sent))


def mutations(address: str, name: str, partitions: int) -> tuple[int, int]:
    """Create a topic by way of one broker; return the error and the pause."""
    host, port = split_address(address)
    link = Link(host, port, "quota-test", PATIENCE_S)
    try:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = link.ask(request, CreateTopicsResponse)
    finally:
        link.close()
    return answer.topics[0].error_code, answer.throttle_time_ms


def test_three_brokers(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path) as cluster:
        addresses = [node.bootstrap for node in cluster.nodes.values()]
        entity = entity_from("ANONYMOUS", None, None)
        wanted = {"producer_byte_rate": float(RATE), "controller_mutation_rate": 1.0}
        with Wire({"bootstrap.servers": addresses[1]}) as wire:
            Quotas(wire).set(entity, wanted)
        for address in addresses:
            with Wire({"bootstrap.servers": address}) as wire:
                quotas = Quotas(wire)
                eventually(lambda: quotas.of(entity) == wanted)  # noqa: B023 - it is called at once
        throttled: list[float] = []
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "batch.num.messages": 1,
                "linger.ms": 0,
                "throttle_cb": lambda event: throttled.append(event.throttle_time),
            }
        )
        for number in range(MESSAGES):
            producer.produce("t", number.to_bytes(4, "big") + bytes(VALUE_BYTES - 4), partition=0)
        assert producer.flush(PATIENCE_S) == 0
        assert any(throttled)
        assert consume(cluster.bootstrap, MESSAGES) == list(range(MESSAGES))
        assert mutations(addresses[0], "many", 30)[0] == 0
        for number, address in enumerate(addresses):
            code, pause_ms = mutations(address, f"more-{number}", 1)
            assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED, "whichever broker was asked"
            assert 0 < pause_ms <= 30_000
