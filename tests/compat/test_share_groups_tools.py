"""Tests Apache Kafka's own tool for share groups with a share consumer of librdkafka."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ShareConsumer

from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import Jvm, tools

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
POLL_S = 0.2


@pytest.fixture(scope="module")
def jvm(group_bootstrap: str, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, group_bootstrap) as running:
        yield running


@pytest.fixture
def consumer(group_bootstrap: str, group: str, numbered: str) -> Iterator[ShareConsumer]:
    """A member that has its partitions."""
    consumer = ShareConsumer({"bootstrap.servers": group_bootstrap, "group.id": group})
    consumer.subscribe([numbered])
    yield consumer
    consumer.close()


def run(jvm: Jvm, *words: str) -> str:
    done = jvm.run(SHARE_GROUPS, *words)
    assert done.code == 0, done.output
    return done.output


def rows(output: str) -> list[list[str]]:
    """Return the words of each line of a table, without its head."""
    lines = [line for line in output.splitlines() if line.strip()]
    start = next(i for i, line in enumerate(lines) if line.split()[0] == "GROUP")
    return [re.split(r"\s+", line.strip()) for line in lines[start + 1 :]]


def members(jvm: Jvm, group: str) -> list[list[str]]:
    return rows(run(jvm, "--describe", "--group", group, "--members"))


def offsets(jvm: Jvm, group: str) -> dict[str, list[str]]:
    """Return the start offset and the lag of each partition."""
    found = rows(run(jvm, "--describe", "--group", group, "--offsets"))
    return {row[2]: row[3:5] for row in found}


def read(bootstrap: str, group: str, topic: str) -> set[tuple[int | None, int | None]]:
    """Return the partition and the offset of each of forty records, once they are here."""
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([topic])
    got: set[tuple[int | None, int | None]] = set()

    def has_all() -> bool:
        found = consumer.poll(POLL_S) or []
        got.update((m.partition(), m.offset()) for m in found if m.error() is None)
        return len(got) == 40

    try:
        eventually(has_all)
    finally:
        consumer.close()
    return got


def leave(jvm: Jvm, group: str, numbered: str, consumer: ShareConsumer) -> None:
    """Leave the group, once the member had its partitions."""

    def is_assigned() -> bool:
        consumer.poll(POLL_S)
        return f"{numbered}:0,1" in str(members(jvm, group))

    eventually(is_assigned)
    consumer.close()
    eventually(lambda: "Empty" in run(jvm, "--describe", "--group", group, "--state"))


def test_a_group_is_seen(jvm: Jvm, group: str, numbered: str, consumer: ShareConsumer) -> None:
    def is_assigned() -> bool:
        consumer.poll(POLL_S)
        return f"{numbered}:0,1" in str(members(jvm, group))

    eventually(is_assigned)
    assert group in run(jvm, "--list")
    assert "Stable" in run(jvm, "--describe", "--group", group, "--state")
    assert offsets(jvm, group).keys() == {"0", "1"}


def test_offsets_and_groups_are_deleted(
    jvm: Jvm, group: str, numbered: str, consumer: ShareConsumer
) -> None:
    leave(jvm, group, numbered, consumer)
    run(jvm, "--delete-offsets", "--group", group, "--topic", numbered)
    assert numbered not in run(jvm, "--describe", "--group", group, "--offsets")
    run(jvm, "--delete", "--group", group)
    assert group not in run(jvm, "--list")


def test_a_group_reads_again_from_where_it_was_reset(
    jvm: Jvm, group: str, numbered: str, consumer: ShareConsumer, group_bootstrap: str
) -> None:
    leave(jvm, group, numbered, consumer)
    topic = ("--group", group, "--topic", numbered)
    run(jvm, "--reset-offsets", *topic, "--to-earliest", "--execute")
    assert offsets(jvm, group) == {"0": ["0", "20"], "1": ["0", "20"]}
    assert len(read(group_bootstrap, group, numbered)) == 40
