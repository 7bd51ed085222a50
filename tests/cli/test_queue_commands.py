"""Tests `barnabas queue` as a user types it."""

import json
from uuid import uuid4

import pytest

from barnabas.client import Queue
from tests.cli.commands_in_process import InProcess, in_process

pytestmark = pytest.mark.compat


@pytest.fixture
def run(
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> InProcess:
    return in_process(bootstrap, monkeypatch, capfdbinary)


@pytest.fixture
def queue(run: InProcess) -> str:
    name = f"q-{uuid4().hex}"
    done = run("queue", "create", name, "--partitions", "1", "--config", "retention.ms=3600000")
    assert done.stdout.decode() == f"Created queue {name}\n"
    return name


def test_messages_go_in_and_out_once(run: InProcess, queue: str) -> None:
    done = run("queue", "put", queue, "one", "two", "--key", "k", "--header", "a=b")
    assert done.stderr.decode() == f"Put 2 messages into {queue}\n"
    run("queue", "put", queue, stdin=b"three\nfour\n")
    first = json.loads(run("queue", "take", queue, "--json").stdout)
    assert (first["value"], first["key"], first["headers"]) == ("one", "k", [["a", "b"]])
    assert (first["offset"], first["deliveries"]) == (0, 1)
    rest = run("queue", "take", queue, "--count", "9", "--timeout", "0.5").stdout
    assert rest == b"two\nthree\nfour\n"
    empty = run("queue", "take", queue, "--timeout", "0.2", code=1)
    assert empty.stderr == b"No message came within 0.2 s\n"


def test_take_keeps_and_rejects(run: InProcess, queue: str) -> None:
    run("queue", "put", queue, "job")
    assert run("queue", "take", queue, "--keep").stdout == b"job\n"
    again = json.loads(run("queue", "take", queue, "--reject", "--json").stdout)
    assert (again["value"], again["deliveries"]) == ("job", 2)
    run("queue", "take", queue, "--timeout", "0.2", code=1)
    both = run("queue", "take", queue, "--keep", "--reject", code=1)
    assert b"--keep and --reject exclude each other" in both.stderr


def test_peek_takes_nothing(run: InProcess, queue: str) -> None:
    run("queue", "put", queue, "one", "two", "three")
    for _ in range(2):
        assert run("queue", "peek", queue, "--count", "2").stdout == b"one\ntwo\n"
    lines = run("queue", "peek", queue, "--json").stdout.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["one", "two", "three"]
    assert run("queue", "take", queue, "--count", "3").stdout == b"one\ntwo\nthree\n"
    assert run("queue", "peek", queue).stdout == b""


def test_stats_and_purge(run: InProcess, queue: str) -> None:
    run("queue", "put", queue, "one", "two", "three")
    stats = json.loads(run("queue", "stats", queue, "--json").stdout)
    assert (stats["depth"], stats["members"], stats["in_flight"]) == (3, 0, None)
    assert stats["partitions"] == [{"partition": 0, "start": 0, "end": 3, "depth": 3}]
    assert b"3 messages" in run("queue", "stats", queue).stdout
    run("queue", "purge", queue, stdin=b"n\n")
    assert json.loads(run("queue", "stats", queue, "--json").stdout)["depth"] == 3
    done = run("queue", "purge", queue, "--yes")
    assert done.stdout.decode() == f"Skipped 3 messages of queue {queue}\n"
    run("queue", "take", queue, "--timeout", "0.2", code=1)
    assert json.loads(run("queue", "stats", queue, "--json").stdout)["depth"] == 0


def test_purge_refuses_while_members_are_there(run: InProcess, bootstrap: str, queue: str) -> None:
    with Queue(queue, bootstrap) as member:
        member.put("job")
        assert member.take(30) is not None
        done = run("queue", "purge", queue, "--yes", code=1)
    assert b"it has members; stop them first" in done.stderr


def test_mistakes_are_one_sentence(run: InProcess, queue: str) -> None:
    again = run("queue", "create", queue, code=1)
    assert b"exists already" in again.stderr
    run("queue", "create", queue, "--if-not-exists")
    for words in (["put", "none", "x"], ["take", "none"], ["peek", "none"], ["stats", "none"]):
        done = run("queue", *words, code=1)
        assert done.stderr.startswith(b'Error: Topic "none"'), done.stderr
