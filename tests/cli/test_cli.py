"""Tests the commands, as a user types them, against a broker."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def read_json(done: subprocess.CompletedProcess[bytes]) -> Any:
    return json.loads(done.stdout)


def read_lines(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return done.stdout.decode().splitlines()


def test_the_life_of_a_topic(run: Run) -> None:
    name = f"t-{uuid4().hex}"
    run("topic", "create", name, "--partitions", "2", "--config", "retention.ms=60000")
    assert b"--if-not-exists" in run("topic", "create", name, code=1).stderr
    run("topic", "create", name, "--if-not-exists")
    listed = {
        each["name"]: each["partitions"] for each in read_json(run("topic", "list", "--json"))
    }
    assert listed[name] == 2

    run("topic", "alter", name, "--partitions", "3", "--unset", "retention.ms")
    run("topic", "alter", name, "--config", "max.message.bytes=2000")
    (described,) = read_json(run("topic", "describe", name, "--json"))
    assert [each["id"] for each in described["partitions"]] == [0, 1, 2]
    assert all(each["leader"] is not None for each in described["partitions"])
    configs = {each["name"]: each["value"] for each in described["configs"]}
    assert configs["max.message.bytes"] == "2000"
    assert "retention.ms" not in configs
    assert b"cannot shrink" in run("topic", "alter", name, "--partitions", "1", code=1).stderr

    run("topic", "delete", name, stdin=b"n\n")
    run("topic", "delete", name, "--yes")
    assert b"There is no topic" in run("topic", "describe", name, code=1).stderr


def test_settings_show_their_source(run: Run, topic: str) -> None:
    run("config", "set", "topic", topic, "retention.ms=1234567", "cleanup.policy=compact")
    run("config", "set", "topic", topic, "--unset", "cleanup.policy")
    found = {
        each["name"]: (each["value"], each["source"])
        for each in read_json(run("config", "get", "topic", topic, "--json"))
    }
    assert found["retention.ms"] == ("1234567", "dynamic topic")
    assert found["cleanup.policy"][0] == "delete"
    assert b"1234567" in run("config", "get", "topic", topic, "retention.ms").stdout
    assert b"no setting" in run("config", "get", "topic", topic, "nope", code=1).stderr
    assert b"There is no topic" in run("config", "get", "topic", "nope", code=1).stderr


def test_bad_settings_change_nothing(run: Run, topic: str) -> None:
    run("config", "set", "topic", topic, "retention.ms=5", "cleanup.policy=sometimes", code=1)
    changed = read_json(run("config", "get", "topic", topic, "retention.ms", "--json"))
    assert changed[0]["value"] != "5"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_as_they_went(run: Run, topic: str, codec: str) -> None:
    lines = [f"line {number}" for number in range(500)]
    sent = "\n".join(lines).encode()
    done = run("produce", topic, "-p", "1", "--compression", codec, stdin=sent)
    assert b"500 records delivered" in done.stderr
    assert read_lines(run("consume", topic, "--until", "end")) == lines


def test_consume_anywhere(run: Run, topic: str) -> None:
    for partition in "01":
        lines = "".join(f"k{each}={each}\n" for each in range(10)).encode()
        run("produce", topic, "-p", partition, "--key-separator", "=", stdin=lines)

    def consume(*words: str) -> list[str]:
        return sorted(read_lines(run("consume", topic, "--format", r"%p:%o %k\n", *words)))

    assert len(consume("--until", "end")) == 20
    assert consume("--from", "-1", "--until", "end") == ["0:9 k9", "1:9 k9"]
    assert consume("--from", "2", "--until", "4", "-p", "1") == ["1:2 k2", "1:3 k3"]
    assert consume("--from", "@2000-01-01", "--until", "@2001-01-01") == []
    assert len(consume("--from", "@2000-01-01", "--until", "end")) == 20
    assert consume("--from", "end", "--until", "end") == []
    assert len(consume("-n", "3")) == 3


def test_json_goes_round(run: Run, topic: str) -> None:
    lines = [
        {"key": "a", "value": "1", "partition": 0, "timestamp": 1_700_000_000_000},
        {"key": None, "value": None, "partition": 0, "headers": [["h", "x"], ["h", None]]},
        {"key_base64": "/w==", "value": "", "partition": 0},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    run("produce", topic, "--format", "json", stdin=text)
    printed = run("consume", topic, "-p", "0", "--until", "end", "--json").stdout
    run("produce", topic, "--format", "json", stdin=printed)
    read = [
        json.loads(line) for line in read_lines(run("consume", topic, "--until", "end", "--json"))
    ]
    assert len(read) == 6
    for first, again in zip(read[:3], read[3:], strict=True):
        assert first | {"offset": 0} == again | {"offset": 0}
    assert read[0]["timestamp"] == 1_700_000_000_000
    assert read[1]["headers"] == [["h", "x"], ["h", None]]


def test_a_bad_line_stops_and_is_named(run: Run, topic: str) -> None:
    text = b'{"value": "a"}\n{"valeu": "b"}\n{"value": "c"}\n'
    done = run("produce", topic, "--format", "json", stdin=text, code=1)
    assert b"line 2: unknown field 'valeu'" in done.stderr
    assert b"1 record delivered" in done.stderr
    done = run("produce", topic, "--format", "json", "--skip-bad", stdin=text, code=1)
    assert b"2 records delivered" in done.stderr
    assert b"1 bad line" in done.stderr


def test_failures_are_counted(run: Run, topic: str) -> None:
    done = run("produce", topic, "--partition", "99", stdin=b"a\nb\n", code=1)
    assert b"0 records delivered" in done.stderr
    assert b"2 FAILED" in done.stderr


def test_files_are_read_in_order(run: Run, topic: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}\n")
    files = [word for name in ("one", "two") for word in ("--file", str(tmp_path / name))]
    run("produce", topic, "-p", "0", *files)
    assert read_lines(run("consume", topic, "--until", "end")) == ["one", "two"]


def test_a_reader_that_goes_away_ends_consume(run: Run, topic: str, bootstrap: str) -> None:
    run("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    command = [sys.executable, "-m", "barnabas.cli", "consume", topic, "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a\n"
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


def test_a_group_remembers(run: Run, topic: str, group: str) -> None:
    run("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    assert read_lines(run("consume", topic, "--group", group, "-n", "2")) == ["a", "b"]
    assert read_lines(run("consume", topic, "--group", group, "--until", "end")) == ["c"]


def test_benchmarks_give_figures(run: Run, topic: str) -> None:
    wrote = read_json(run("bench", "produce", "-t", topic, "-n", "2000", "--json"))
    assert wrote["records"] == 2000
    assert wrote["latency_ms"]["p50"] <= wrote["latency_ms"]["max"]
    read = read_json(run("bench", "consume", "-t", topic, "-n", "2000", "--json"))
    assert read["records"] >= 2000
    trips = read_json(run("bench", "latency", "-t", topic, "-n", "20", "--json"))
    assert trips["records"] == 20
    assert trips["latency_ms"]["max"] > 0


def test_topic_names_complete(run: Run, topic: str, bootstrap: str) -> None:
    environment = {
        "_BARNABAS_COMPLETE": "complete_bash",
        "COMP_WORDS": f"barnabas consume {topic[:10]}",
        "COMP_CWORD": "2",
        "BARNABAS_BOOTSTRAP": bootstrap,
    }
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli"], capture_output=True, env=environment, check=False
    )
    assert done.stdout.decode().split() == [topic]
