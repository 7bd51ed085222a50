"""Tests share groups with confluent-kafka's share consumer and with Apache Kafka's own tools."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import ShareConsumer

from barnabas.testing.waiting import eventually
from tests.compat.test_groups_tools import RUN_TOOLS, TOOLS, table
from tests.support.loads.kafka_tools import Jvm, tools

pytestmark = pytest.mark.compat

SHARE_GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"
RECORDS = 40
"""In the fixture `numbered`: 20 in each of two partitions."""


@pytest.fixture(scope="module")
def jvm(group_bootstrap: str, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, group_bootstrap) as running:
        yield running


@pytest.fixture
def earliest(jvm: Jvm, group: str) -> str:
    """Return a share group that begins at the first records."""
    what = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
    done = jvm.run("kafka.admin.ConfigCommand", *what, "--group", group)
    assert "Completed updating" in done.output, done.output
    return group


def consumer(bootstrap: str, group: str, topic: str, **settings: str) -> ShareConsumer:
    made = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0, **settings}
    )
    made.subscribe([topic])
    return made


def test_two_members_share_a_topic_and_get_each_record_once(
    group_bootstrap: str, earliest: str, numbered: str
) -> None:
    members = [consumer(group_bootstrap, earliest, numbered) for _ in range(2)]
    found: Counter[tuple[int, int]] = Counter()

    def all_came() -> bool:
        for member in members:
            found.update((each.partition(), each.offset()) for each in member.poll(0.1))
        return len(found) == RECORDS

    eventually(all_came, 60)
    for member in members:
        member.close()
    assert set(found.values()) == {1}


def test_the_console_consumer_and_the_groups_command(
    jvm: Jvm, earliest: str, numbered: str
) -> None:
    what = ("--topic", numbered, "--group", earliest, "--max-messages", str(RECORDS))
    done = jvm.run(f"{TOOLS}.consumer.ConsoleShareConsumer", *what, "--timeout-ms", "60000")
    assert f"Processed a total of {RECORDS} messages" in done.output, done.output
    assert earliest in jvm.run(SHARE_GROUPS, "--list").output.split()
    rows = table(jvm.run(SHARE_GROUPS, "--describe", "--group", earliest).output)
    assert {row["PARTITION"]: (row["START-OFFSET"], row["LAG"]) for row in rows} == {
        "0": ("20", "0"),
        "1": ("20", "0"),
    }
    back = ("--reset-offsets", "--to-earliest", "--topic", numbered, "--execute")
    rows = table(jvm.run(SHARE_GROUPS, *back, "--group", earliest).output)
    assert [row["NEW-OFFSET"] for row in rows] == ["0", "0"]
    again = jvm.run(f"{TOOLS}.consumer.ConsoleShareConsumer", *what, "--timeout-ms", "60000")
    assert f"Processed a total of {RECORDS} messages" in again.output, again.output
    done = jvm.run(SHARE_GROUPS, "--delete", "--group", earliest)
    assert "successful" in done.output, done.output
    assert earliest not in jvm.run(SHARE_GROUPS, "--list").output.split()


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_consumer_acknowledges_in_every_mode(
    jvm: Jvm, earliest: str, numbered: str, mode: str
) -> None:
    what = ("--topic", numbered, "--group-id", earliest, "--max-messages", str(RECORDS))
    done = jvm.run(f"{TOOLS}.VerifiableShareConsumer", *what, "--acknowledgement-mode", mode)
    lines = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    read = sum(line["count"] for line in lines if line["name"] == "records_consumed")
    stored = [line for line in lines if line["name"] == "offsets_acknowledged"]
    assert read == RECORDS
    assert all(line["success"] for line in stored)
    assert sum(line["count"] for line in stored) == RECORDS


def test_share_consumer_performance_is_measured(jvm: Jvm, earliest: str, numbered: str) -> None:
    what = ("--topic", numbered, "--group", earliest, "--num-records", str(RECORDS))
    done = jvm.run(f"{TOOLS}.ShareConsumerPerformance", *what, "--timeout", "60000")
    (row,) = [line.split(", ") for line in done.output.splitlines() if line[:2] == "20"]
    assert row[5] == str(RECORDS), done.output
