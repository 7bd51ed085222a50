"""The loads of the benchmarks: produce, consume, and measure round trips."""

import time
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.admin.connecting import ANSWER_TIMEOUT_S
from barnabas.admin.partition_reading import COORDINATOR_TROUBLE, Place, Reading, Span
from barnabas.cli.bench.bench_figures import Latencies, Pace, Result
from barnabas.cli.common.failure import CommandError

if TYPE_CHECKING:
    from random import Random

    from confluent_kafka import Consumer, Message, Producer

ROOM_WAIT_S = 0.05
STAMP = Struct(">qd")
PAYLOADS = 64
TICK_RECORDS = 256

Tick = Callable[[int], None]


def payloads(size: int, rng: "Random") -> list[bytes]:
    """Return values that compress about like text: random letters of a small alphabet."""
    letters = b"abcdefghijklmnop"
    return [bytes(rng.choices(letters, k=size)) for _ in range(PAYLOADS)]


class Writing:
    """Produces records at a rate and measures the time to each acknowledgement."""

    def __init__(self, producer: "Producer", topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._latencies = Latencies()
        self._failed = 0
        self._delivered = 0

    def run(self, values: list[bytes], count: int, rate: float | None, tick: Tick) -> Result:
        """Produce all records, wait for them, and return the results."""
        self._warm_up(values[0])
        started_s = time.perf_counter()
        pace = Pace(rate, started_s)
        for number in range(count):
            self._pause(pace.wait_s(number, time.perf_counter()))
            self._send(values[number % len(values)])
            if number % TICK_RECORDS == 0:
                self._producer.poll(0)
                tick(self._delivered)
        while self._producer.flush(ROOM_WAIT_S):
            tick(self._delivered)
        return Result(
            name="produce",
            records=self._delivered,
            bytes=self._delivered * len(values[0]),
            seconds=time.perf_counter() - started_s,
            failed=self._failed,
            latency_ms=self._latencies.percentiles(),
        )

    def _warm_up(self, value: bytes) -> None:
        """Send one record that does not count, so that connecting is not measured."""
        self._producer.produce(self._topic, value=value)
        self._producer.flush()

    def _pause(self, seconds: float) -> None:
        deadline_s = time.perf_counter() + seconds
        while seconds > 0:
            # poll returns at the first report, so wait for the rest of the pause.
            self._producer.poll(seconds)
            seconds = deadline_s - time.perf_counter()

    def _send(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value=value, on_delivery=self._on_delivery)
            except BufferError:
                self._producer.poll(ROOM_WAIT_S)
            else:
                return

    def _on_delivery(self, error: KafkaError | None, message: "Message") -> None:
        if error is None:
            self._delivered += 1
            self._latencies.add(message.latency() or 0.0)
        else:
            self._failed += 1


def read_all(
    consumer: "Consumer", spans: dict[Place, Span], count: int | None, tick: Tick
) -> Result:
    """Read spans to their ends, or a number of records, and return the results."""
    started_s = time.perf_counter()
    done = size = 0
    for batch in Reading(consumer, spans, to_end=True):
        done += len(batch)
        size += sum(len(message) for message in batch)
        tick(done)
        if count is not None and done >= count:
            break
    seconds = time.perf_counter() - started_s
    return Result(name="consume", records=done, bytes=size, seconds=seconds)


def round_trips(
    producer: "Producer",
    consumer: "Consumer",
    place: Place,
    *,
    count: int,
    size: int,
    rate: float | None,
    tick: Tick,
) -> Result:
    """Produce one record at a time, wait until it is consumed, and return the round trips."""
    _tune_in(consumer, place)
    latencies = Latencies()
    started_s = time.perf_counter()
    pace = Pace(rate, started_s)
    for number in range(count):
        time.sleep(pace.wait_s(number, time.perf_counter()))
        sent_s = time.perf_counter()
        value = STAMP.pack(number, sent_s).ljust(size, b".")
        producer.produce(place[0], value=value, partition=place[1])
        _await(consumer, producer, number)
        latencies.add(time.perf_counter() - sent_s)
        tick(number + 1)
    return Result(
        name="latency",
        records=count,
        bytes=count * max(size, STAMP.size),
        seconds=time.perf_counter() - started_s,
        latency_ms=latencies.percentiles(),
    )


def _tune_in(consumer: "Consumer", place: Place) -> None:
    """Start consuming at the end, and return once the first fetch has succeeded."""
    _, high = consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_TIMEOUT_S)
    consumer.assign([TopicPartition(*place, high)])
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline_s:
        message = consumer.poll(ANSWER_TIMEOUT_S)
        if message is not None and _is_end(message):
            return
    raise CommandError(f"Nothing could be read from {place[0]}; check the broker")


def _await(consumer: "Consumer", producer: "Producer", number: int) -> None:
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline_s:
        producer.poll(0)
        message = consumer.poll(ANSWER_TIMEOUT_S)
        if message is None or _is_end(message):
            continue
        if message.error() is None and STAMP.unpack_from(message.value())[0] == number:
            return
    raise CommandError(f"Record {number} was written but not read within {ANSWER_TIMEOUT_S:.0f} s")


def _is_end(message: "Message") -> bool:
    error = message.error()
    if error is None or error.code() in COORDINATOR_TROUBLE:
        return False
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return True
