"""Exactly once: driver, JVM, workers and broker are killed mid-stream without effect on tables.

A simulated fleet, with dirt and faults, feeds `barnabas telemetry run`, which writes tables and
alerts, and processes are killed repeatedly. Afterwards a second broker gets a copy of the topic,
and an undisturbed pipeline processes it. Both must have the same result.

Batches differ between the two, so the test compares only what must not depend on them: nothing is
near the watermark (settings below), and the first batch has no dirt, as it has no watermark yet.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples.sample_messages import Tick, encode_tick
from barnabas.testing.process import BrokerSubprocess
from tests.support.loads.exactly_once_processes import BROKER_SETTINGS
from tests.support.pipelines.pipeline import Pipeline, drain, tables, telemetry

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

KILLS = int(os.environ.get("CHAOS_KILLS", "20"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
VICTIMS = ("driver", "worker", "broker", "worker", "JVM", "broker")
GPUS = 8
SPEED = 5
CLEAN_S = 300
FLEET_S = 4 * 3600
MESSAGES_A_BATCH = 1000
"""125 s of the fleet: less than the watermark's delay, so that no batch passes it."""
SETTINGS = "late_after_s: 300\n"
MOMENTS = (
    "bronze",
    "silver",
    "gold_10s",
    "findings",
    "_work/silver-outbox",
    "_work/silver-numbers",
    "_work/findings-gpus",
    "_batches/bronze",
    "_batches/silver",
    "_batches/gold_10s",
    "_checkpoints/silver/offsets",
    "_checkpoints/silver/commits",
    "_checkpoints/gold_10s/offsets",
    "_checkpoints/gold_10s/commits",
    "_checkpoints/findings/offsets",
)
"""A new file in one of these folders marks a point within a batch of some job."""


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
@pytest.mark.timeout(600 + 120 * KILLS)
def test_kills_in_mid_stream_leave_no_trace(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    settings = tmp_path / "thresholds.yaml"
    settings.write_text(SETTINGS)
    options = ["--settings", str(settings), "--messages-a-batch", str(MESSAGES_A_BATCH)]
    options += ["--driver-memory", "1g", "--master", "local[2]"]
    with BrokerSubprocess(tmp_path / "topics", settings=BROKER_SETTINGS) as broker:
        pipeline = Pipeline(broker.bootstrap, tmp_path / "lake", [*options, "--trigger", "1s"])
        _disturbed(broker, pipeline)
        drain(broker.bootstrap, pipeline.lake, options)
        sent = {name: _committed(broker.bootstrap, name) for name in SENT}
        broker.terminate()
        shutil.copytree(tmp_path / "topics", tmp_path / "copy")
    with BrokerSubprocess(tmp_path / "copy", settings=BROKER_SETTINGS) as copy:
        _delete(copy.bootstrap, SENT)
        drain(copy.bootstrap, tmp_path / "calm", options)
        calm_sent = {name: _committed(copy.bootstrap, name) for name in SENT}
    found, calm = tables(pipeline.lake), tables(tmp_path / "calm")
    for name in calm:
        assert _difference(found[name], calm[name]) == {}, name
    for name in SENT:
        assert _difference(WORDED[name](sent[name]), WORDED[name](calm_sent[name])) == {}, name
    assert sum(calm["silver"].values()) > 0
    assert sum(calm["alerts"].values()) == len(calm_sent[topics.ALERTS]) > 0
    for name, count in pipeline.kills.items():
        record_property(f"kills of {name}", count)
    for name, rows in calm.items():
        record_property(f"rows of {name}", sum(rows.values()))
    record_property("dead letters", len(calm_sent[topics.REFUSED]))
    record_property("seconds", round(time.monotonic() - began))


def _disturbed(broker: BrokerSubprocess, pipeline: Pipeline) -> None:
    """Run the pipeline on a stream with kills, and stop it without."""
    rng = random.Random(SEED)
    start_ms = time.time_ns() // 1_000_000 - (FLEET_S + 2 * CLEAN_S) * 1000
    _send_clean(broker.bootstrap, start_ms)
    with ExitStack() as stack:
        stack.enter_context(_fleet(broker.bootstrap, start_ms + CLEAN_S * 1000))
        stack.enter_context(pipeline)
        for number in range(KILLS):
            _wait_for_a_moment(pipeline, rng)
            _kill(VICTIMS[number % len(VICTIMS)], broker, pipeline, rng)
        _wait_for_a_moment(pipeline, rng)
        pipeline.stop()
    _send_tick(broker.bootstrap, start_ms + (FLEET_S + CLEAN_S) * 1000)


def _wait_for_a_moment(pipeline: Pipeline, rng: random.Random) -> None:
    """Wait until silver has completed a batch since the last kill, and some job is within one."""
    notes = _files(pipeline.lake / "_batches" / "silver")
    pipeline.wait_for(lambda: _files(pipeline.lake / "_batches" / "silver") > notes)
    folder = pipeline.lake / rng.choice(MOMENTS)
    there = _files(folder)
    pipeline.wait_for(lambda: bool(_files(folder) - there))


def _files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def _kill(victim: str, broker: BrokerSubprocess, pipeline: Pipeline, rng: random.Random) -> None:
    if victim == "driver":
        pipeline.kill_driver()
    elif victim == "JVM":
        pipeline.kill_java()
    elif victim == "worker":
        pipeline.kill_worker(rng)
    else:
        broker.restart()
        pipeline.kills["broker"] += 1


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


def _simulate(bootstrap: str, start_ms: int, *more: str) -> list[str]:
    given = [
        "--bootstrap",
        bootstrap,
        "--gpus",
        str(GPUS),
        "--start",
        _iso(start_ms),
        "--tick",
        "0s",
    ]
    return telemetry("simulate", *given, "--partitions", "2", *more)


def _send_clean(bootstrap: str, start_ms: int) -> None:
    more = ["--duration", f"{CLEAN_S}s", "--speed", "max", "--faults", "none"]
    subprocess.run(_simulate(bootstrap, start_ms, *more), check=True, capture_output=True)


@contextmanager
def _fleet(bootstrap: str, start_ms: int) -> Iterator[None]:
    """Produce until the block ends; the broker's records are then the input."""
    more = ["--duration", f"{FLEET_S}s", "--speed", str(SPEED), "--dirt", "0.02"]
    command = _simulate(bootstrap, start_ms, *more, "--fault-share", "0.6", "--seed", str(SEED))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.poll() is None, "the fleet ended before the kills did"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _send_tick(bootstrap: str, time_ms: int) -> None:
    """Close all windows."""
    message = encode_tick(Tick(timestamp_ms=time_ms, hostname="chaos"), "chaos")
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topics.SAMPLES, message.value, headers=message.headers, partition=0)
    assert producer.flush(30) == 0


Sent = list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]


def _committed(bootstrap: str, topic: str) -> Sent:
    """Return all committed records of a topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    found: Sent = []
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(30)
            assert message is not None, f"{topic} was not read to its end"
            if message.error() is not None:
                ended += 1
            else:
                headers = tuple(message.headers() or ())
                found.append((message.key(), message.value(), headers))
    finally:
        consumer.close()
    return found


def _letters(sent: Sent) -> Counter[object]:
    """Return dead letters by position and reason; the time and the watermark differ."""
    names = ("dlq.topic", "dlq.partition", "dlq.offset", "dlq.reason")
    return Counter((key, value, *(dict(headers)[n] for n in names)) for key, value, headers in sent)


def _records(sent: Sent) -> Counter[object]:
    return Counter((key, value) for key, value, _ in sent)


def _last(sent: Sent) -> Counter[object]:
    """Return the last state of each GPU: intermediate states depend on batches."""
    return Counter({key: value for key, value, _ in sent}.items())


WORDED: Mapping[str, Callable[[Sent], Counter[object]]] = {
    topics.ALERTS: _records,
    topics.REFUSED: _letters,
    topics.LATEST: _last,
}
SENT = tuple(WORDED)
T = TypeVar("T")


def _difference(found: Counter[T], expected: Counter[T]) -> dict[str, list[T]]:
    """Return some of the missing and of the unexpected rows."""
    lost, extra = list((expected - found).elements()), list((found - expected).elements())
    counts = {"lost": lost, "extra": extra}
    return {f"{name} {len(rows)}": rows[:3] for name, rows in counts.items() if rows}


def _delete(bootstrap: str, names: tuple[str, ...]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for answer in admin.delete_topics(list(names)).values():
        answer.result(30)
