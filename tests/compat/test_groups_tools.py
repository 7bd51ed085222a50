"""Tests Apache Kafka's own tools for groups: its Java admin client and its consumers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.loads.kafka_tools import Jvm, tools

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def jvm(group_bootstrap: str, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, group_bootstrap) as running:
        yield running


@pytest.fixture
def committed(group_bootstrap: str, group: str, numbered: str) -> str:
    """Return the name of a group without members whose offsets are 5 and 20."""
    settings = {"bootstrap.servers": group_bootstrap, "group.id": group}
    consumer = Consumer(settings)
    places = [TopicPartition(numbered, 0, 5), TopicPartition(numbered, 1, 20)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    return group


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table(output: str) -> list[dict[str, str]]:
    """Parse a table with a head in capitals and columns separated by blanks."""
    lines = [line for line in output.splitlines() if line.strip()]
    start = next(i for i, line in enumerate(lines) if line.split()[0] in ("GROUP", "TOPIC"))
    head = re.split(r"\s{2,}|\s(?=[A-Z#])", lines[start].strip())
    return [dict(zip(head, line.split(), strict=False)) for line in lines[start + 1 :]]


def test_the_console_consumer_joins_a_group(
    jvm: Jvm, group: str, numbered: str, protocol: str
) -> None:
    what = ("--topic", numbered, "--from-beginning", "--max-messages", "40")
    how = ("--group", group, "--consumer-property", f"group.protocol={protocol}")
    done = jvm.run(f"{TOOLS}.consumer.ConsoleConsumer", *what, *how)
    assert "Processed a total of 40 messages" in done.output
    rows = table(jvm.run(GROUPS, "--describe", "--group", group).output)
    assert [row["CURRENT-OFFSET"] for row in rows] == ["20", "20"]


def test_consumer_performance_is_measured_in_a_group(jvm: Jvm, group: str, numbered: str) -> None:
    what = ("--topic", numbered, "--group", group, "--num-records", "40")
    done = jvm.run(f"{TOOLS}.ConsumerPerformance", *what)
    (row,) = [line.split(", ") for line in done.output.splitlines() if line[:2] == "20"]
    assert row[4] == "40"


def test_the_verifiable_consumer_prints_its_events(
    jvm: Jvm, group: str, numbered: str, protocol: str
) -> None:
    what = ("--topic", numbered, "--group-id", group, "--max-messages", "40")
    how = ("--reset-policy", "earliest", "--group-protocol", protocol)
    done = jvm.run(f"{TOOLS}.VerifiableConsumer", *what, *how)
    lines = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    assert {line["name"] for line in lines} >= {
        "startup_complete",
        "partitions_assigned",
        "records_consumed",
        "offsets_committed",
        "shutdown_complete",
    }
    assert sum(line["count"] for line in lines if line["name"] == "records_consumed") == 40
    assert all(line["success"] for line in lines if line["name"] == "offsets_committed")


def test_groups_are_listed_by_state_and_type(jvm: Jvm, committed: str) -> None:
    assert committed in jvm.run(GROUPS, "--list").output.split()
    by_state = jvm.run(GROUPS, "--list", "--state", "Empty").output
    assert re.search(rf"^{committed}\s+Empty", by_state, re.MULTILINE)
    by_type = jvm.run(GROUPS, "--list", "--type", "classic").output
    assert re.search(rf"^{committed}\s+Classic", by_type, re.MULTILINE)
    assert committed not in jvm.run(GROUPS, "--list", "--state", "Stable").output.split()


def test_a_group_is_described(jvm: Jvm, committed: str) -> None:
    rows = table(jvm.run(GROUPS, "--describe", "--group", committed).output)
    shown = [(row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"]) for row in rows]
    assert sorted(shown) == [("0", "5", "20"), ("1", "20", "20")]
    assert sorted(row["LAG"] for row in rows) == ["0", "15"]
    state = jvm.run(GROUPS, "--describe", "--group", committed, "--state").output
    assert "Empty" in state
    members = jvm.run(GROUPS, "--describe", "--group", committed, "--members").output
    assert f"Consumer group '{committed}' has no active members." in members


def test_offsets_are_reset(jvm: Jvm, committed: str, numbered: str) -> None:
    def reset(*how: str) -> list[str]:
        which = ("--group", committed, "--topic", numbered)
        done = jvm.run(GROUPS, "--reset-offsets", *which, *how)
        rows = table(done.output)
        return [row["NEW-OFFSET"] for row in sorted(rows, key=lambda row: row["PARTITION"])]

    assert reset("--to-earliest", "--dry-run") == ["0", "0"]
    assert reset("--shift-by", "2", "--execute") == ["7", "20"]
    # Record 10 is 100 ms after the first, which is at 1,700,000,000 s.
    assert reset("--to-datetime", "2023-11-14T22:13:20.095", "--execute") == ["10", "10"]
    rows = table(jvm.run(GROUPS, "--describe", "--group", committed).output)
    assert [row["CURRENT-OFFSET"] for row in rows] == ["10", "10"]


def test_offsets_and_groups_are_deleted(jvm: Jvm, committed: str, numbered: str) -> None:
    which = ("--group", committed, "--topic", f"{numbered}:0")
    assert "Successful" in jvm.run(GROUPS, "--delete-offsets", *which).output
    rows = table(jvm.run(GROUPS, "--describe", "--group", committed).output)
    assert [row["PARTITION"] for row in rows] == ["1"]
    deleted = jvm.run(GROUPS, "--delete", "--group", committed).output
    assert f"Deletion of requested consumer groups ('{committed}') was successful." in deleted
    assert committed not in jvm.run(GROUPS, "--list").output.split()
    again = jvm.run(GROUPS, "--delete", "--group", committed).output
    assert "GroupIdNotFoundException" in again
