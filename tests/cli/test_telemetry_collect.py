"""Tests `barnabas telemetry collect` and `simulate`, as a user types them, against a broker."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from barnabas.telemetry.samples.sample_messages import Sample, Snapshot, Tick, content_type, decode
from barnabas.testing.waiting import eventually

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Topics = tuple[str, ...]
LONG = """\
timestamp,metric_name,gpu_id,device,uuid,modelName,Hostname,container,pod,namespace,value,labels_raw
2025-07-18T20:42:34Z,DCGM_FI_DEV_GPU_UTIL,0,nvidia0,GPU-1,NVIDIA H100,node-a,,,,97,
2025-07-18T20:42:34Z,DCGM_FI_DEV_GPU_UTIL,0,nvidia0,GPU-1,NVIDIA H100,node-a,,,,high,
2025-07-18T20:42:34Z,DCGM_FI_DEV_GPU_TEMP,0,nvidia0,GPU-1,NVIDIA H100,node-a,,,,54,
this is no row
"""
SMI = "timestamp, uuid, utilization.gpu [%]\n"


class Exporter(BaseHTTPRequestHandler):
    """A dcgm-exporter with one card."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-7",Hostname="node-7"} 41\n')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def exporter() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def topics() -> tuple[str, str]:
    name = f"gpu-{uuid4().hex}"
    return name, f"{name}-dlq"


@pytest.fixture
def send(run: Run, topics: Topics) -> Callable[..., Any]:
    """Runs a command of the group with separate topics; returns the summary."""

    def command(*words: str) -> Any:
        done = run("telemetry", *words, "--topic", topics[0], "--dlq", topics[1], "--json")
        return json.loads(done.stdout)

    return command


@pytest.fixture
def records(bootstrap: str) -> Callable[[str], list[Message]]:
    def read(topic: str) -> list[Message]:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": False}
        )
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            places = [TopicPartition(topic, each, 0) for each in partitions]
            expected = sum(consumer.get_watermark_offsets(each, timeout=10)[1] for each in places)
            consumer.assign(places)
            found: list[Message] = []
            while len(found) < expected:
                found += consumer.consume(1000, timeout=1.0)
            return found
        finally:
            consumer.close()

    return read


Send = Callable[..., dict[str, Any]]
Records = Callable[[str], list[Message]]


def decoded(message: Message) -> Sample | Snapshot | Tick:
    value = message.value()
    assert value is not None
    return decode(value, content_type(message.headers() or []))


def test_the_bundled_recording(
    send: Send, records: Records, topics: Topics, admin: AdminClient
) -> None:
    summary = send("collect", "--sample", "h200", "--speed", "max", "--start", "now")
    assert (summary["samples"], summary["messages"], summary["refused"]) == (45_312, 2_833, 0)
    found = [decoded(each) for each in records(topics[0])]
    snapshots = [each for each in found if isinstance(each, Snapshot)]
    (tick,) = [each for each in found if isinstance(each, Tick)]
    assert len(snapshots) == 2_832
    times = [each.timestamp_ms for each in snapshots]
    assert times == sorted(times)
    assert tick.timestamp_ms == times[-1] + 180_000
    resource = ConfigResource(ResourceType.TOPIC, topics[0])
    configs = admin.describe_configs([resource])[resource].result()
    assert configs["message.timestamp.type"].value == "LogAppendTime"
    # By the broker's clock, none of the samples is from the future.
    assert times[-1] <= max(each.timestamp()[1] for each in records(topics[0]))


def test_bad_rows_go_to_the_dead_letters(
    send: Send, records: Records, topics: Topics, tmp_path: Path
) -> None:
    path = tmp_path / "dump.csv"
    path.write_text(LONG)
    summary = send("collect", str(path), "--layout", "sample", "--speed", "max", "--tick", "0s")
    assert (summary["samples"], summary["refused"]) == (2, 2)
    assert summary["first_refusals"][0] == {
        "where": f"{path} line 3",
        "reason": "value 'high' is not a number",
    }
    found = records(topics[0])
    assert [each.key() for each in found] == [b"GPU-1", b"GPU-1"]
    assert sorted(each.metric_name for each in map(decoded, found) if isinstance(each, Sample)) == [
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_GPU_UTIL",
    ]
    refused = records(topics[1])
    assert [each.value() for each in refused] == [
        LONG.splitlines()[2].encode(),
        b"this is no row",
    ]
    headers = dict(refused[0].headers() or [])
    assert headers.pop("dlq.time")
    assert headers == {
        "source": b"csv",
        "dlq.topic": b"",
        "dlq.partition": b"-1",
        "dlq.offset": b"-1",
        "dlq.reason": b"unreadable-line",
        "dlq.detail": f"{path} line 3: value 'high' is not a number".encode(),
    }


def test_exporters_are_scraped_and_one_that_is_down_is_reported(
    send: Send, records: Records, topics: Topics, exporter: str
) -> None:
    down = "127.0.0.1:1"
    words = ["--dcgm", exporter, "--dcgm", down, "--interval", "100ms", "--rounds", "3"]
    summary = send("collect", *words)
    assert summary["samples"] == 3
    assert summary["outages"] == {f"http://{down}/metrics": 3}
    found = [decoded(each) for each in records(topics[0])]
    assert {(e.gpu_id, e.hostname, e.value) for e in found if isinstance(e, Sample)} == {
        ("GPU-7", "node-7", 41)
    }


def test_trouble_is_reported_as_it_comes(run: Run, topic: str, topics: Topics) -> None:
    words = ["--dcgm", "127.0.0.1:1", "--interval", "50ms", "--rounds", "2", "--topic", topic]
    done = run("telemetry", "collect", *words, "--dlq", topics[1], code=1)
    assert b"Error: No exporter returned a page (http://127.0.0.1:1/metrics: " in done.stderr
    assert b"keeps the producers' times" in done.stderr
    assert done.stderr.count(b"http://127.0.0.1:1/metrics does not answer") == 1
    assert b"did not answer 2 times" in done.stdout


@pytest.mark.parametrize("every", ["1ms", "0s"])
def test_progress_is_printed_in_lines_if_stderr_is_no_terminal(
    run: Run, topics: Topics, exporter: str, every: str
) -> None:
    words = ["--dcgm", exporter, "--interval", "50ms", "--rounds", "8", "--progress", every]
    done = run("telemetry", "collect", *words, "--topic", topics[0], "--dlq", topics[1])
    lines = re.findall(rb"^\d+\.\ds: (\d) samples, [\d,]+/s$", done.stderr, re.MULTILINE)
    assert bool(lines) == (every != "0s")
    assert lines == sorted(lines)


def test_a_followed_file_continues_until_ctrl_c(
    bootstrap: str, records: Records, topics: Topics, tmp_path: Path
) -> None:
    path = tmp_path / "smi.csv"
    path.write_text(SMI + "2026/11/15 06:54:54.154, GPU-1, 5\n")
    words = ["telemetry", "collect", str(path), "--follow", "--layout", "sample", "--json"]
    options = ["--topic", topics[0], "--dlq", topics[1], "--bootstrap", bootstrap]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", *words, *options],
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    try:
        eventually(lambda: len(_try(records, topics[0])) == 1)
        with path.open("a") as stream:
            stream.write("2026/11/15 06:54:55.154, GPU-1, 6\n")
        eventually(lambda: len(_try(records, topics[0])) == 2)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert json.loads(said)["samples"] == 2


def _try(records: Records, topic: str) -> list[Message]:
    try:
        return records(topic)
    except KeyError:  # the collector has not created it yet
        return []
    except KafkaException as refusal:  # or this broker does not know it yet
        if refusal.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return []


def test_a_simulated_fleet_with_dirt(
    send: Send, records: Records, topics: Topics, tmp_path: Path
) -> None:
    labels, dirt_labels = tmp_path / "truth.jsonl", tmp_path / "dirt.jsonl"
    words = ["--gpus", "24", "--duration", "30s", "--speed", "max", "--seed", "3"]
    files = ["--labels", str(labels), "--dirt-labels", str(dirt_labels)]
    summary = send("simulate", *words, "--dirt", "0.05", *files)
    truth = [json.loads(line) for line in labels.read_text().splitlines()]
    dirt = [json.loads(line) for line in dirt_labels.read_text().splitlines()]
    found = records(topics[0])
    assert len(found) == summary["messages"]
    numbers = {dict(each.headers() or []).get("dirt") for each in found} - {None}
    assert numbers == {str(each["number"]).encode() for each in dirt}
    assert summary["dirt"] == len(dirt) > 15
    clean = [decoded(each) for each in found if "dirt" not in dict(each.headers() or [])]
    assert {each.gpu_id for each in clean if isinstance(each, Snapshot)} == {
        each["gpu_id"] for each in truth
    }
    assert {each["finding"] for each in truth if "finding" in each} == set(summary["findings"])


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["collect"], b"Select one source"),
        (["collect", "--sample", "h200", "--nvidia-smi"], b"Select one source"),
        (["collect", "--sample", "h200", "--rounds", "2"], b"are for --dcgm"),
        (["collect", "--sample", "h200", "--timezone", "Mars"], b"write UTC or a name"),
        (["collect", "none.csv"], b"There is no file none.csv"),
        (["collect", "--dcgm", "h:99999"], b"Port out of range"),
        (["collect", "--dcgm", "h", "--http", "nowhere"], b"write 127.0.0.1:9401"),
        (["collect", "--dcgm", "h", "--interval", "0s"], b"longer than 0s"),
        (["collect", "--targets", "none.yml"], b"none.yml: No such file"),
        (["collect", "--kubernetes", "app=dcgm"], b"does not run in a Kubernetes pod"),
        (["collect", "--settings", "none.yml"], b"name a YAML file"),
        (["collect", "--sample", "h200", "--timeout", "1s"], b"is for exporters"),
        (["collect", "--sample", "h200", "--spool-limit", "1"], b"write 1GB"),
        (["simulate", "--faults", "rust"], b"choose from all, none, idle"),
        (["simulate", "--interval", "0s"], b"longer than 0s"),
    ],
)
def test_bad_requests_say_what_to_change(run: Run, words: list[str], advice: bytes) -> None:
    assert advice in run("telemetry", *words, code=1).stderr


@pytest.mark.parametrize("name", ["collect", "simulate"])
def test_help_has_an_example(name: str) -> None:
    words = [sys.executable, "-m", "barnabas.cli", "telemetry", name, "--help"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert b"Examples: barnabas telemetry" in done.stdout
