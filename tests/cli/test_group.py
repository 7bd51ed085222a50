"""Tests `barnabas group`, as a user types it, against a broker."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Place = Callable[..., None]
Committed = Callable[[str, str], dict[int, int]]

PATIENCE_S = 60.0
HOUR_S = 3600
RECORDS = 10


def read_json(done: subprocess.CompletedProcess[bytes]) -> Any:
    return json.loads(done.stdout)


@pytest.fixture
def filled(topic: str, bootstrap: str) -> str:
    """A topic whose partitions have ten records each, one hour old and a second apart."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    now_ms = time.time_ns() // 1_000_000
    for number in range(RECORDS):
        written_ms = now_ms - 1000 * (HOUR_S + RECORDS - number)
        for partition in (0, 1):
            producer.produce(topic, str(number), partition=partition, timestamp=written_ms)
    assert producer.flush(PATIENCE_S) == 0
    return topic


@pytest.fixture
def place(admin: AdminClient) -> Place:
    """Sets the offsets of a group for some partitions."""

    def put(group: str, topic: str, offset: int, partitions: Sequence[int] = (0, 1)) -> None:
        wanted = [TopicPartition(topic, each, offset) for each in partitions]
        request = [ConsumerGroupTopicPartitions(group, wanted)]
        asked = admin.alter_consumer_group_offsets(request, request_timeout=PATIENCE_S)
        assert all(each.error is None for each in asked[group].result().topic_partitions)

    return put


@pytest.fixture
def committed(admin: AdminClient) -> Committed:
    """Returns the offsets of a group for a topic."""

    def ask(group: str, topic: str) -> dict[int, int]:
        request = [ConsumerGroupTopicPartitions(group)]
        asked = admin.list_consumer_group_offsets(request, request_timeout=PATIENCE_S)
        found = asked[group].result().topic_partitions
        return {each.partition: each.offset for each in found if each.topic == topic}

    return ask


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[Consumer]:
    """A member that has got its partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "reader",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while not consumer.assignment():
            assert time.monotonic() < deadline_s, "the group assigned no partitions"
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


def test_list_knows_states_and_types(
    run: Run, filled: str, group: str, bootstrap: str, place: Place
) -> None:
    other = f"{group}-empty"
    place(other, filled, 0)
    with member(bootstrap, group, filled):

        def names(*words: str) -> set[str]:
            return {each["group"] for each in read_json(run("group", "list", *words, "--json"))}

        assert {group, other} <= names()
        assert group in names("--state", "stable")
        assert other not in names("--state", "Stable")
        assert other in names("--state", "Empty")
        assert group in names("--type", "classic")
        assert group not in names("--type", "consumer")
    assert group.encode() in run("group", "list").stdout


def test_describe_counts_records_and_seconds(run: Run, filled: str, group: str) -> None:
    run("group", "reset", group, "--topic", f"{filled}:0", "--to-offset", "4", "--execute")
    run("group", "reset", group, "--topic", f"{filled}:1", "--to-latest", "--execute")
    (found,) = read_json(run("group", "describe", group, "--json"))
    behind, level = found["partitions"]
    assert (behind["committed"], behind["end"], behind["lag"]) == (4, RECORDS, 6)
    assert behind["lag_seconds"] >= HOUR_S + RECORDS - 4
    assert behind["lag_seconds"] < 2 * HOUR_S
    assert (level["lag"], level["lag_seconds"]) == (0, 0)
    assert (found["state"], found["lag"], found["members"]) == ("Empty", 6, [])
    assert found["lag_seconds"] == behind["lag_seconds"]
    shown = run("group", "describe", group).stdout.decode()
    assert "Behind by 6 records, time lag 1h" in shown


def test_many_partitions_of_large_batches_all_have_an_age(
    run: Run, group: str, place: Place
) -> None:
    name, count = f"t-{uuid4().hex}", 40
    run("topic", "create", name, "--partitions", str(count))
    lines = [json.dumps({"value": "x" * 50_000, "partition": each}) for each in range(count)]
    run("produce", name, "--format", "json", stdin="\n".join(lines).encode())
    place(group, name, 0, range(count))
    (found,) = read_json(run("group", "describe", group, "--json"))
    assert [each["lag"] for each in found["partitions"]] == [1] * count
    assert all(each["lag_seconds"] is not None for each in found["partitions"])


def test_a_record_that_is_gone_has_no_age(
    run: Run, filled: str, group: str, admin: AdminClient, place: Place
) -> None:
    place(group, filled, 2)
    (cut,) = admin.delete_records([TopicPartition(filled, 0, 5)]).values()
    cut.result(PATIENCE_S)
    (found,) = read_json(run("group", "describe", group, "--json"))
    gone, there = found["partitions"]
    assert (gone["lag"], gone["lag_seconds"]) == (8, None)
    assert there["lag_seconds"] >= HOUR_S


def test_describe_shows_the_partitions_of_each_member(
    run: Run, filled: str, group: str, bootstrap: str, place: Place
) -> None:
    place(group, filled, 3, [0])
    with member(bootstrap, group, filled):
        (found,) = read_json(run("group", "describe", group, "--json"))
        shown = run("group", "describe", group).stdout.decode()
    (only,) = found["members"]
    assert only["client_id"] == "reader"
    assert [each["partition"] for each in only["partitions"]] == [0, 1]
    assert found["state"] == "Stable"
    first, second = found["partitions"]
    assert first["member_id"] == second["member_id"] == only["member_id"]
    assert (second["committed"], second["lag"], second["lag_seconds"]) == (None, None, None)
    assert f"{filled}:0,1" in shown


def test_an_unknown_group_is_one_sentence(run: Run, group: str) -> None:
    for words in (("describe",), ("delete", "--yes")):
        done = run("group", words[0], group, *words[1:], code=1)
        assert f"There is no group {group}".encode() in done.stderr


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], RECORDS),
        (["--to-offset", "0"], 0),
        (["--to-offset", "7"], 7),
        (["--shift-by", "-2"], 2),
        (["--shift-by", "3"], 7),
        (["--to-current"], 4),
        (["--to-datetime", "2001-01-01"], 0),
        (["--by-duration", "1h"], RECORDS),
        (["--by-duration", "2h"], 0),
    ],
)
def test_reset_moves_to(
    run: Run,
    filled: str,
    group: str,
    words: list[str],
    after: int,
    place: Place,
    committed: Committed,
) -> None:
    place(group, filled, 4)
    reset = ("group", "reset", group, "--all-topics", *words, "--json")
    dry = read_json(run(*reset))
    assert dry["executed"] is False
    assert committed(group, filled) == {0: 4, 1: 4}
    done = read_json(run(*reset, "--execute"))
    assert done["executed"] is True
    assert done["partitions"] == dry["partitions"]
    assert [each["before"] for each in done["partitions"]] == [4, 4]
    assert [each["change"] for each in done["partitions"]] == [after - 4] * 2
    assert committed(group, filled) == {0: after, 1: after}


def test_a_time_within_the_log_is_found(run: Run, filled: str, group: str) -> None:
    (found,) = read_json(run("group", "reset", group, "--topic", f"{filled}:1", "--by-duration",
                             f"{HOUR_S + RECORDS}s", "--json"))["partitions"]  # fmt: skip
    assert found["before"] is None
    assert 0 < found["after"] <= RECORDS


def test_only_the_partitions_named_move(
    run: Run, filled: str, group: str, place: Place, committed: Committed
) -> None:
    place(group, filled, 4)
    run("group", "reset", group, "--topic", f"{filled}:1", "--to-latest", "--execute")
    assert committed(group, filled) == {0: 4, 1: RECORDS}
    run("group", "reset", group, "--topic", f"{filled}:0-1", "--to-offset", "5", "--execute")
    assert committed(group, filled) == {0: 5, 1: 5}


def test_a_dry_run_shows_what_would_change(run: Run, filled: str, group: str, place: Place) -> None:
    place(group, filled, 4, [0])
    done = run("group", "reset", group, "--topic", f"{filled}:0", "--shift-by", "100")
    assert b"10 " in done.stdout
    assert b"104 is past the end of the log at 10" in done.stdout
    assert b"add --execute" in done.stderr
    done = run("group", "reset", group, "--topic", f"{filled}:0", "--shift-by", "-5", "--json")
    (found,) = read_json(done)["partitions"]
    assert found["after"] == 0
    assert found["note"] == "-1 is before the start of the log at 0"


def test_what_was_exported_can_be_brought_back(
    run: Run, filled: str, group: str, tmp_path: Path, place: Place, committed: Committed
) -> None:
    place(group, filled, 3, [0])
    place(group, filled, 8, [1])
    exported = run("group", "reset", group, "--all-topics", "--to-current", "--export").stdout
    assert exported.decode() == f"{filled},0,3\n{filled},1,8\n"
    file = tmp_path / "offsets.csv"
    file.write_bytes(exported)
    place(group, filled, 0)
    run("group", "reset", group, "--from-file", str(file), "--execute")
    assert committed(group, filled) == {0: 3, 1: 8}


def test_members_are_in_the_way(run: Run, filled: str, group: str, bootstrap: str) -> None:
    reset = ("group", "reset", group, "--topic", filled, "--to-earliest")
    with member(bootstrap, group, filled):
        refused = run(*reset, "--execute", code=1).stderr
        assert b"has 1 member (reader at" in refused
        assert b"stop them" in refused
        assert b"stop them" in run(*reset).stderr
        assert b"stop them" in run("group", "delete", group, "--yes", code=1).stderr
        place_less = ("group", "delete", group, "--topic", filled, "--yes")
        assert b"committed nothing" in run(*place_less, code=1).stderr


def test_commits_of_a_topic_in_use_stay(
    run: Run, filled: str, group: str, bootstrap: str, place: Place, committed: Committed
) -> None:
    place(group, filled, 2)
    with member(bootstrap, group, filled):
        done = run("group", "delete", group, "--topic", filled, "--yes", code=1)
    assert b"its members subscribe to that topic" in done.stderr
    assert committed(group, filled) == {0: 2, 1: 2}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--to-earliest"], "Select partitions"),
        (["--topic", "{}", "--all-topics", "--to-earliest"], "Select partitions"),
        (["--topic", "{}"], "Pass exactly one target"),
        (["--topic", "{}", "--to-earliest", "--to-offset", "0"], "Pass exactly one target"),
        (["--topic", "{}", "--shift-by", "1"], "Nothing is committed for {}:0"),
        (["--topic", "{}:7", "--to-latest"], "has no partition 7"),
        (["--topic", "{}:x", "--to-latest"], "names no partitions"),
        (["--topic", "nope", "--to-latest"], "There is no topic nope"),
        (["--topic", "{}", "--to-datetime", "noon"], "'noon' is not a time"),
        (["--topic", "{}", "--by-duration", "long"], "'long' is not a duration"),
        (["--all-topics", "--to-latest"], "has committed nothing"),
    ],
)
def test_what_cannot_be_is_reported(
    run: Run, topic: str, group: str, words: list[str], sentence: str
) -> None:
    done = run("group", "reset", group, *(word.format(topic) for word in words), code=1)
    assert sentence.format(topic) in done.stderr.decode()


def test_delete_asks_and_then_deletes(
    run: Run, filled: str, group: str, place: Place, committed: Committed
) -> None:
    place(group, filled, 4)
    run("group", "delete", group, stdin=b"n\n")
    assert committed(group, filled) == {0: 4, 1: 4}
    run("group", "delete", group, stdin=b"y\n")
    assert b"There is no group" in run("group", "describe", group, code=1).stderr


def test_commits_of_one_topic_can_go(
    run: Run, filled: str, group: str, admin: AdminClient, place: Place, committed: Committed
) -> None:
    other = f"t-{uuid4().hex}"
    run("topic", "create", other, "--partitions", "1")
    place(group, filled, 4)
    place(group, other, 0, [0])
    run("group", "delete", group, "--topic", f"{filled}:1", "--yes")
    assert committed(group, filled) == {0: 4}
    run("group", "delete", group, "--topic", filled, "--yes")
    assert committed(group, filled) == {}
    assert committed(group, other) == {0: 0}


def test_watch_as_json_ends_with_a_signal(
    run: Run, filled: str, group: str, bootstrap: str, place: Place
) -> None:
    place(group, filled, 4)
    words = ["group", "describe", group, "--watch", "--json", "--interval", "0.1"]
    command = [sys.executable, "-m", "barnabas.cli", *words, "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())[0]["lag"] == 12
        place(group, filled, 9)
        deadline_s = time.monotonic() + PATIENCE_S
        while json.loads(process.stdout.readline())[0]["lag"] != 2:
            assert time.monotonic() < deadline_s
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""


def test_watch_on_a_terminal_leaves_it_as_it_was(
    run: Run, filled: str, group: str, bootstrap: str, place: Place
) -> None:
    place(group, filled, 4)
    words = ["group", "describe", group, "--watch", "--interval", "0.1"]
    command = [sys.executable, "-m", "barnabas.cli", *words, "--bootstrap", bootstrap]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while seen.count(b"Behind by 12 records") < 2:
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        rest = seen + read_all(ours)
        assert process.wait(PATIENCE_S) == 0
    os.close(ours)
    assert b"Traceback" not in rest
    hidden, shown = b"\x1b[?25l", b"\x1b[?25h"
    assert rest.count(hidden) == rest.count(shown) == 1
    assert rest.rindex(shown) > rest.rindex(hidden)


def read_all(descriptor: int) -> bytes:
    """Read a terminal's output until its program ends, which Linux reports as an error."""
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts)
