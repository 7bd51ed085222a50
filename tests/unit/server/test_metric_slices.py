"""Tests that a scrape of 10,000 partitions is made in slices of little work each."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.node.partitions.partition import Partition
from barnabas.server.metrics.exposition_text import (
    SLICE_NS,
    TEXTS_A_SLICE,
    Writer,
    escaped,
    number,
    slices,
)
from barnabas.server.metrics.metric_families import CONNECTIONS_REFUSED
from barnabas.server.metrics.partition_metrics import (
    OF_LEADERS,
    OF_REPLICAS,
    by_partition,
    by_topic,
)
from tests.support.http_client import Samples

PARTITIONS, TOPICS = 10_000, 100


class Looks:
    """Counts how often partitions are looked at."""

    def __init__(self) -> None:
        self.count = 0


def partition(number: int, looks: Looks) -> Partition:
    """Return a stand-in without a log: half of them lead."""

    class Log:
        start_offset = number
        end_offset = 2 * number
        segments = (None, None)

        @property
        def size(self) -> int:
            looks.count += 1
            return 1000 + number

    made: Any = SimpleNamespace(
        name=TopicPartition(f"topic-{number % TOPICS}", number // TOPICS),
        leads=number % 2 == 0,
        log=Log(),
        replicas=[1, 2, 3],
        isr=[1, 2],
        placed=SimpleNamespace(isr=[1, 2], replicas=[1, 2, 3], adding=[]),
        leader=SimpleNamespace(is_under_min_isr=False),
        in_sync=SimpleNamespace(isr=[1, 2], effective_min_isr=2),
        high_watermark=10,
        last_stable_offset=7,
    )
    return cast("Partition", made)


def still() -> int:
    """A clock that stands still, so that slices end by their number of texts."""
    return 0


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def partitions(looks: Looks) -> list[Partition]:
    return [partition(number, looks) for number in range(PARTITIONS)]


def test_ten_thousand_partitions_come_in_slices(partitions: list[Partition], looks: Looks) -> None:
    lines, most_looks, before = 0, 0, 0
    pieces = []
    for piece in slices(by_partition(Writer(), partitions), still):
        assert piece.count("\n") <= TEXTS_A_SLICE + 2
        most_looks = max(most_looks, looks.count - before)
        before = looks.count
        lines += piece.count("\n")
        pieces.append(piece)
    heads = 2 * (len(OF_LEADERS) + len(OF_REPLICAS))
    assert lines == heads + PARTITIONS // 2 * len(OF_LEADERS) + PARTITIONS * len(OF_REPLICAS)
    assert most_looks <= TEXTS_A_SLICE
    found = Samples("".join(pieces))
    place = {"topic": "topic-42", "partition": "3"}
    assert found.value("kafka_log_log_size", **place) == 1000 + 342
    assert found.value("kafka_cluster_partition_underreplicated", **place) == 1
    assert found.value("kafka_cluster_partition_atminisr", **place) == 1
    assert found.value("kafka_cluster_partition_laststableoffsetlag", **place) == 3


def test_sums_by_topic_are_made_in_slices_too(partitions: list[Partition], looks: Looks) -> None:
    most_looks, before, text = 0, 0, ""
    for piece in slices(by_topic(Writer(), partitions), still):
        most_looks = max(most_looks, looks.count - before)
        before = looks.count
        text += piece
    assert most_looks <= 20 * TEXTS_A_SLICE
    found = Samples(text)
    sizes = sum(1000 + number for number in range(42, PARTITIONS, TOPICS))
    assert found.value("kafka_log_log_size", topic="topic-42") == sizes
    assert found.value("kafka_cluster_partition_replicascount", topic="topic-42") == 3 * TOPICS
    assert len(found.series("kafka_log_log_size")) == TOPICS


def test_a_slice_ends_when_its_time_is_over() -> None:
    now_ns = 0

    def clock_ns() -> int:
        return now_ns

    def texts() -> Iterator[str]:
        nonlocal now_ns
        for _ in range(1000):
            now_ns += SLICE_NS // 100
            yield "x\n"

    found = list(slices(texts(), clock_ns))
    assert "".join(found) == "x\n" * 1000
    assert [len(piece) // 2 for piece in found] == [100] * 10 + [0]


def test_labels_cannot_break_out() -> None:
    hostile = 'a"} 1\nevil{x="\\'
    text = "".join(Writer().labelled(CONNECTIONS_REFUSED, [([hostile], 1)]))
    assert Samples(text).series(CONNECTIONS_REFUSED.name) == [{"reason": hostile}]
    assert escaped("\\") == "\\\\"
    assert len(escaped("x" * 1000)) == 200


def test_numbers_are_exact() -> None:
    assert number(2**63 - 1) == "9223372036854775807"
    assert number(True) == "1"
    assert number(3.0) == "3"
    assert number(0.1) == "0.1"
