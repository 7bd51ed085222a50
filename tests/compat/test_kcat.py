"""Tests kcat, the command line of librdkafka."""

import json
import shutil
import subprocess

import pytest

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker

pytestmark = pytest.mark.compat

LINES = [f"key{n}:value {n}" for n in range(200)]


def kcat(broker: Broker, *arguments: str, text: str = "") -> str:
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("kcat is not installed (Debian package kcat)")
    done = subprocess.run(
        [program, "-b", broker.bootstrap, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back(broker: Broker, topic: str, codec: str, acks: str) -> None:
    text = "\n".join(LINES) + "\n"
    settings = ("-X", f"topic.acks={acks}", "-z", codec)
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K:", *settings, text=text)
    found = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", "200", "-K:", "-q")
    assert found == text
    tail = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "150", "-e", "-K:", "-q")
    assert tail.splitlines() == LINES[150:]


def test_offsets_are_found_by_time(broker: Broker, topic: str, sent: list[Record]) -> None:
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K:", text="\n".join(LINES))
    shown = kcat(broker, "-C", "-t", topic, "-p", "0", "-c", "100", "-f", "%T %o\n", "-q")
    time_ms, _ = shown.splitlines()[99].split()
    first = next(line for line in shown.splitlines() if line.startswith(time_ms))
    assert kcat(broker, "-Q", "-t", f"{topic}:0:{time_ms}").split()[-1] == first.split()[1]


def test_metadata_is_listed(broker: Broker, topic: str) -> None:
    kcat(broker, "-P", "-t", topic, text="one\n")
    listed = json.loads(kcat(broker, "-L", "-J", "-t", topic))
    names = [b["name"] for b in listed["brokers"]]
    assert sorted(names) == sorted(broker.bootstrap.split(","))
    assert [t["topic"] for t in listed["topics"]] == [topic]
