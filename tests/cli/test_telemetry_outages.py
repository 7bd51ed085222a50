"""Tests `barnabas telemetry collect` while exporters or brokers are down; real processes."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.telemetry.collect.fetching import FetchError, get
from barnabas.telemetry.collect.targets import Access
from barnabas.telemetry.samples.sample_messages import Sample, content_type, decode
from barnabas.testing.free_ports import free_port
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from tests.support.pipelines.canned_http import Canned, answer, canned, trickle

PATIENCE_S = 60.0
TOPIC = "gpu-telemetry"
PAGE = answer(b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-7",Hostname="node-7"} 41\n')


class Collecting:
    """A collector as a process, whose output goes to files."""

    def __init__(self, folder: Path, bootstrap: str, *words: str) -> None:
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"
        command = [sys.executable, "-m", "barnabas.cli", "telemetry", "collect", "--json"]
        options = ["--bootstrap", bootstrap, "-X", "message.timeout.ms=500", "--progress", "50ms"]
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            self.process = subprocess.Popen([*command, *words, *options], stdout=out, stderr=err)

    @property
    def stderr_text(self) -> str:
        return self.stderr.read_text()

    def wait_for_message(self, text: str) -> None:
        eventually(lambda: text in self.stderr_text, PATIENCE_S)

    def end(self, code: int = 0) -> Any:
        """Ask it to end, and return its summary."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended(code)

    def ended(self, code: int = 0) -> Any:
        assert self.process.wait(PATIENCE_S) == code, self.stderr_text
        assert "Traceback" not in self.stderr_text
        return json.loads(self.stdout.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    with BrokerSubprocess(tmp_path / "data") as running:
        yield running


@pytest.fixture
def exporter() -> Iterator[Canned]:
    with canned(PAGE) as server:
        yield server


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Any]:
    started: list[Collecting] = []

    def start(bootstrap: str, *words: str) -> Collecting:
        folder = tmp_path / f"run-{len(started)}"
        folder.mkdir()
        started.append(Collecting(folder, bootstrap, *words))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def instants(bootstrap: str) -> list[int]:
    """Return the times of all samples in the topic, in order of their offsets."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        found: list[int] = []
        for partition in consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions:
            place = TopicPartition(TOPIC, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            count = 0
            while count < end:
                for message in consumer.consume(1000, timeout=1.0):
                    sample = decode(message.value() or b"", content_type(message.headers() or []))
                    assert isinstance(sample, Sample)
                    found.append(sample.timestamp_ms)
                    count += 1
        return found
    finally:
        consumer.close()


def test_an_exporter_that_trickles_stops_neither_the_others_nor_the_end(
    broker: BrokerSubprocess, exporter: Canned, collecting: Any
) -> None:
    with canned(trickle) as slow:
        words = ["--dcgm", slow.address, "--dcgm", exporter.address, "--timeout", "1h"]
        collector = collecting(broker.bootstrap, *words, "--interval", "1h")
        collector.wait_for_message(" 1 samples")
        account = collector.end()
    assert (account["samples"], account["delivered"], account["undecided"]) == (1, 1, 0)
    assert len(instants(broker.bootstrap)) == 1


def test_messages_of_an_outage_are_kept_on_disk_and_delivered(
    broker: BrokerSubprocess, exporter: Canned, collecting: Any, tmp_path: Path
) -> None:
    spool = ["--spool", str(tmp_path / "spool"), "--interval", "50ms"]
    first = collecting(broker.bootstrap, "--dcgm", exporter.address, *spool)
    first.wait_for_message(" samples")
    broker.kill()
    first.wait_for_message("Keeping messages in")
    first.wait_for_message(" kept (")
    before = first.end()
    assert before["kept"] > 0
    assert before["delivered"] + before["kept"] == before["messages"]
    # A collector that starts while the broker is still down appends to the stored samples.
    second = collecting(broker.bootstrap, "--dcgm", exporter.address, *spool)
    second.wait_for_message("No broker answered at")
    second.wait_for_message(f"{before['kept']:,} messages in")
    second.wait_for_message(" kept (")
    broker.start()
    second.wait_for_message("are delivered")
    after = second.end()
    assert (after["kept"], after["dropped"], after["failed"]) == (0, 0, 0)
    assert after["delivered"] == after["messages"] + before["kept"]
    found = instants(broker.bootstrap)
    assert len(set(found)) == before["messages"] + after["messages"]


def test_a_full_spool_says_what_it_drops(exporter: Canned, collecting: Any, tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    spool = ["--spool", str(tmp_path / "spool"), "--spool-limit", "64KB", "--interval", "1ms"]
    pages = f"127.0.0.1:{free_port()}"
    collector = collecting(nowhere, "--dcgm", exporter.address, *spool, "--http", pages)
    collector.wait_for_message("Messages are dropped, the oldest first: the spool is full")
    collector.wait_for_message(" DROPPED")

    def metric(name: str) -> float:
        url = f"http://{pages}/metrics"
        try:
            text = get(url, Access(), timeout_s=20, bytes_max=1 << 20).decode()
        except FetchError:
            return 0.0
        lines = [line.split() for line in text.splitlines()]
        return next(float(line[1]) for line in lines if line[0] == f"barnabas_collector_{name}")

    assert eventually(lambda: metric("dropped_total") > 0)
    assert 0 < metric("spool_bytes") <= 65_536
    account = collector.end(code=1)
    assert account["dropped"] > 0
    assert account["kept"] + account["dropped"] == account["messages"]
    assert "messages were not delivered (the spool was full)" in collector.stderr_text


def test_without_a_spool_an_outage_and_its_losses_are_reported_while_they_last(
    broker: BrokerSubprocess, exporter: Canned, collecting: Any
) -> None:
    words = ["--dcgm", exporter.address, "--interval", "50ms"]
    collector = collecting(broker.bootstrap, *words)
    collector.wait_for_message(" samples")
    broker.kill()
    collector.wait_for_message("No broker answers")
    collector.wait_for_message("A message was lost, and more may be")
    collector.wait_for_message(" FAILED (")
    broker.start()
    collector.wait_for_message("A broker answers again")
    account = collector.end(code=1)
    assert account["failed"] > 0
    assert account["delivered"] == account["messages"] - account["failed"]


def test_targets_of_a_file_and_a_password_that_is_not_shown(
    broker: BrokerSubprocess, collecting: Any, tmp_path: Path
) -> None:
    path = tmp_path / "targets.yml"
    with canned(answer(b"", "401 Unauthorized")) as locked, canned(PAGE) as added:
        path.write_text(f"[{{targets: ['me:s3cret@{locked.address}'], labels: {{rack: r7}}}}]")
        collector = collecting(broker.bootstrap, "--targets", str(path), "--interval", "50ms")
        collector.wait_for_message(f"{locked.url} does not answer (answered 401 Unauthorized)")
        new = tmp_path / "new.yml"
        new.write_text(f"[{{targets: ['me:s3cret@{added.address}'], labels: {{rack: r7}}}}]")
        new.rename(path)
        collector.wait_for_message("names 1 targets now")
        eventually(lambda: re.search(r" [1-9]\d* samples", collector.stderr_text))
        assert b"Authorization: Basic bWU6czNjcmV0" in added.requests[0]
        account = collector.end()
    assert account["samples"] >= 1
    assert "s3cret" not in collector.stderr_text + collector.stdout.read_text()
