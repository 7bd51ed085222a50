"""Tests `barnabas group` on share groups."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from barnabas.client import Queue, Record
from barnabas.testing.waiting import eventually
from tests.cli.commands_in_process import InProcess, in_process

pytestmark = pytest.mark.compat


@pytest.fixture
def run(
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> InProcess:
    return in_process(bootstrap, monkeypatch, capfdbinary)


PATIENCE_S = 30.0


@pytest.fixture
def queue(bootstrap: str) -> Iterator[Queue]:
    """A queue with three messages in each of two partitions; it has no members yet."""
    with Queue.create(f"q-{uuid4().hex}", bootstrap, partitions=2) as queue:
        queue.put_many([Record(value=f"{each}", partition=each % 2) for each in range(6)])
        yield queue


def take_all(bootstrap: str, name: str) -> list[str]:
    """Take what there is with a member that leaves again."""
    with Queue(name, bootstrap) as member:
        found = []
        while batch := member.take_batch(10, 1.0):
            found += [message.text for message in batch]
            for message in batch:
                message.ack()
        member.flush(PATIENCE_S)
    return found


def test_list_and_describe_show_share_groups(run: InProcess, queue: Queue) -> None:
    (message,) = queue.take_batch(1, PATIENCE_S)
    listed = json.loads(run("group", "list", "--type", "Share", "--json").stdout)
    assert {"group": queue.group, "type": "Share", "state": "Stable"} in listed
    (found,) = json.loads(run("group", "describe", queue.group, "--json").stdout)
    (member,) = found["members"]
    assert (found["type"], found["state"], found["assignor"]) == ("Share", "Stable", "simple")
    assert member["partitions"] == [
        {"topic": queue.topic, "partition": 0},
        {"topic": queue.topic, "partition": 1},
    ]
    message.ack()
    queue.flush(PATIENCE_S)
    shown = run("group", "describe", queue.group).stdout.decode()
    assert shown.startswith(f"Group {queue.group}  Share  Stable  simple  coordinator 1  1 member")
    assert member["member_id"] in shown


def test_reset_moves_the_start_and_members_are_in_the_way(
    run: InProcess, bootstrap: str, queue: Queue
) -> None:
    assert sorted(take_all(bootstrap, queue.topic)) == [f"{each}" for each in range(6)]
    reset = ("group", "reset", queue.group, "--topic", queue.topic, "--to-earliest")
    dry = json.loads(run(*reset, "--json").stdout)
    assert (dry["executed"], [each["after"] for each in dry["partitions"]]) == (False, [0, 0])
    run(*reset, "--execute")
    (found,) = json.loads(run("group", "describe", queue.group, "--json").stdout)
    assert [(each["start"], each["lag"]) for each in found["partitions"]] == [(0, 3), (0, 3)]
    with Queue(queue.topic, bootstrap) as member:
        member.take(0)
        eventually(lambda: member.stats().members == 1)
        refused = run(*reset, "--execute", code=1)
        assert b"can be reset only without" in refused.stderr


def test_delete_forgets_a_topic_or_the_group(run: InProcess, bootstrap: str, queue: Queue) -> None:
    take_all(bootstrap, queue.topic)
    delete = ("group", "delete", queue.group)
    part = run(*delete, "--topic", f"{queue.topic}:0", "--yes", code=1)
    assert b"forgets whole topics only" in part.stderr
    run(*delete, "--topic", queue.topic, "--yes")
    (found,) = json.loads(run("group", "describe", queue.group, "--json").stdout)
    assert found["partitions"] == []
    run(*delete, "--yes")
    gone = run("group", "describe", queue.group, code=1)
    assert b"There is no group" in gone.stderr
    assert eventually(lambda: queue.stats().state == "Dead")
