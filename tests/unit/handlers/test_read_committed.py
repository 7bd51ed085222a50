"""Tests read_committed consumers with interleaved transactions: committed, aborted and open.

The model is a list of sent records with their outcomes. The records that a consumer shows are
computed as clients do, from the batches and the list of aborted transactions alone.
"""

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from barnabas.node.coordination.marker_writing import Marker, write_marker
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.records import TRANSACTIONAL, Record, batches
from tests.support.talk.batches import committed
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, fetch_request, produce

READ_COMMITTED = 1
VERSIONS = range(4, 19)


class Sent(NamedTuple):
    """A record in the model."""

    offset: int
    value: bytes
    producer: int


class Twin:
    """Sends requests to a broker, and keeps a simple list of what it sent."""

    def __init__(self, talk: Dialogue, topic: str = "a") -> None:
        self.talk = talk
        self.topic = topic
        self.sent: list[Sent] = []
        self.aborted: set[int] = set()
        self._open: dict[int, list[int]] = {}
        self._next: dict[int, tuple[int, int]] = {}

    @property
    def last_stable_offset(self) -> int:
        """Return the offset of the first open transaction, or the end."""
        first = [offsets[0] for offsets in self._open.values()]
        return min([*first, self.partition.log.end_offset])

    @property
    def partition(self) -> Partition:
        return self.talk.node.find(self.topic, 0)

    def write(self, producer: int, value: bytes, count: int = 1) -> None:
        epoch, sequence = self._next.get(producer, (0, 0))
        self._next[producer] = (epoch, sequence + count)
        content = batch(
            count, producer=(producer, epoch, sequence), attributes=TRANSACTIONAL, value=value
        )
        base = self.partition.leader.append(memoryview(content), self.talk.now_ms).base_offset
        self.talk.settle()
        self._open.setdefault(producer, [])
        for offset in range(base, base + count):
            self.sent.append(Sent(offset, value, producer))
            self._open[producer].append(offset)

    def write_outside(self, value: bytes) -> None:
        result = produce(self.talk, self.topic, batch(value=value))
        self.sent.append(Sent(result.base_offset, value, -1))

    def end(self, producer: int, *, commit: bool, raises_epoch: bool = True) -> None:
        epoch, _ = self._next.get(producer, (0, 0))
        if raises_epoch:
            epoch += 1
            self._next[producer] = (epoch, 0)
        version = 2 if raises_epoch else 1
        marker = Marker(producer, epoch, commit, 0, version)
        write_marker(self.talk.node, self.topic, 0, marker, self.talk.now_ms)
        self.talk.settle()
        offsets = self._open.pop(producer, [])
        if not commit:
            self.aborted |= set(offsets)

    def expected(self, start: int = 0) -> list[tuple[int, bytes]]:
        return [
            (sent.offset, sent.value)
            for sent in self.sent
            if start <= sent.offset < self.last_stable_offset and sent.offset not in self.aborted
        ]

    def shown(self, start: int = 0, **limits: int) -> list[tuple[int, bytes]]:
        """Return the records that a consumer shows if it fetches to the end."""
        offset = start
        shown: list[tuple[int, bytes]] = []
        while True:
            result = fetch(self.talk, self.topic, offset, isolation_level=READ_COMMITTED, **limits)
            assert (result.error_code, result.last_stable_offset) == (0, self.last_stable_offset)
            found = list(batches(result.records))
            if not found:
                return shown
            shown += [(r.offset, r.value or b"") for r in seen(result) if r.offset >= offset]
            offset = found[-1][0].last_offset + 1


def seen(result: Any) -> list[Record]:
    aborted = [(entry.producer_id, entry.first_offset) for entry in result.aborted_transactions]
    return committed(batches(result.records), aborted)


@pytest.fixture
def model(talk: Dialogue) -> Twin:
    create_topic(talk, "a")
    return Twin(talk)


def aborted_in(result: Any) -> list[tuple[int, int]]:
    return [(entry.producer_id, entry.first_offset) for entry in result.aborted_transactions]


def interleave(model: Twin) -> None:
    """Two producers end their transactions, one commits and one aborts; a third does not end its
    own.
    """
    model.write_outside(b"plain")  # 0
    model.write(7, b"good", 2)  # 1, 2
    model.write(8, b"bad")  # 3
    model.write(7, b"good")  # 4
    model.write_outside(b"plain")  # 5
    model.end(8, commit=False)  # 6
    model.end(7, commit=True)  # 7
    model.write(9, b"open")  # 8
    model.write_outside(b"hidden")  # 9


def test_interleaved_transactions(model: Twin) -> None:
    interleave(model)
    result = fetch(model.talk, "a", isolation_level=READ_COMMITTED)
    assert (result.high_watermark, result.last_stable_offset) == (10, 8)
    assert aborted_in(result) == [(8, 3)]
    assert [record.offset for record in seen(result)] == [0, 1, 2, 4, 5]
    assert model.shown() == model.expected()


def test_read_uncommitted_gets_everything_and_no_list(model: Twin) -> None:
    interleave(model)
    result = fetch(model.talk, "a")
    assert result.aborted_transactions is None
    assert [header.base_offset for header, _ in batches(result.records)] == [
        *(0, 1, 3, 4, 5, 6, 7, 8, 9),
    ]
    assert result.last_stable_offset == 8


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_lists_aborted_transactions(talk: Dialogue, version: int) -> None:
    topic_id = create_topic(talk, "a")
    model = Twin(talk)
    interleave(model)
    topic: str | bytes = topic_id if version >= 13 else "a"
    result = fetch(talk, topic, version=version, isolation_level=READ_COMMITTED)
    assert aborted_in(result) == [(8, 3)]
    assert [record.offset for record in seen(result)] == [0, 1, 2, 4, 5]


def test_only_transactions_that_overlap_what_is_returned_are_listed(model: Twin) -> None:
    for producer in (7, 8, 9):
        model.write(producer, b"bad")  # 0, 2, 4
        model.end(producer, commit=False)  # 1, 3, 5

    def listed(offset: int, **limits: int) -> list[int]:
        result = fetch(model.talk, "a", offset, isolation_level=READ_COMMITTED, **limits)
        return [entry.producer_id for entry in result.aborted_transactions]

    assert listed(0) == [7, 8, 9]
    assert listed(2) == [8, 9]
    assert listed(3) == [8, 9]
    assert listed(0, partition_max_bytes=1) == [7]
    assert listed(4, partition_max_bytes=1) == [9]
    assert listed(6) == []


def test_a_transaction_that_began_before_and_ends_after_is_listed(model: Twin) -> None:
    model.write(7, b"bad")  # 0
    for _ in range(3):
        model.write_outside(b"plain")  # 1, 2, 3
    model.write(7, b"bad")  # 4
    model.end(7, commit=False)  # 5
    result = fetch(model.talk, "a", 2, isolation_level=READ_COMMITTED, partition_max_bytes=1)
    assert aborted_in(result) == [(7, 0)]
    assert model.shown(2) == [(2, b"plain"), (3, b"plain")]


def test_a_fetch_waits_for_the_marker(model: Twin) -> None:
    model.write(7, b"good")
    wanted = fetch_request("a", 0, isolation_level=READ_COMMITTED, max_wait_ms=1_000)
    exchange = model.talk.send(wanted, 12)
    assert exchange.waiting
    model.write(7, b"good")
    assert exchange.waiting
    model.end(7, commit=True)
    ((result,),) = [topic.partitions for topic in exchange.answer.responses]
    assert (result.last_stable_offset, len(seen(result))) == (3, 2)


def test_a_session_gets_the_marker(model: Twin) -> None:
    model.write(7, b"good")
    first = fetch_request("a", 0, isolation_level=READ_COMMITTED, session_epoch=0)
    answer = model.talk.ask(first, 12)
    assert [p.records for t in answer.responses for p in t.partitions] == [b""]
    following = fetch_request(
        "a", isolation_level=READ_COMMITTED, max_wait_ms=1_000, session_epoch=1
    )
    following.topics, following.session_id = [], answer.session_id
    exchange = model.talk.send(following, 12)
    assert exchange.waiting
    model.end(7, commit=False)
    ((result,),) = [topic.partitions for topic in exchange.answer.responses]
    assert (aborted_in(result), seen(result)) == ([(7, 0)], [])


def test_a_marker_that_is_not_safe_hides_what_it_ends(model: Twin) -> None:
    model.write(7, b"good")
    model.talk.hold_syncs = True
    model.end(7, commit=True)
    result = fetch(model.talk, "a", isolation_level=READ_COMMITTED)
    assert (result.last_stable_offset, result.records) == (0, b"")
    model.talk.release_syncs()
    result = fetch(model.talk, "a", isolation_level=READ_COMMITTED)
    assert (result.last_stable_offset, len(seen(result))) == (2, 1)


@pytest.mark.parametrize("version", [2, 5, 11])
def test_the_latest_offset_depends_on_the_isolation_level(model: Twin, version: int) -> None:
    interleave(model)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    for isolation_level, latest in ((0, 10), (READ_COMMITTED, 8)):
        request = ListOffsetsRequest(
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name="a", partitions=[wanted])],
        )
        ((result,),) = [t.partitions for t in model.talk.ask(request, version).topics]
        assert result.offset == latest


@pytest.mark.parametrize("seed", range(24))
def test_only_committed_records_are_read_whatever_happens(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    talk = Dialogue(tmp_path)
    config = {"segment.bytes": rng.choice(["1024", "2048", "99999"]), "index.interval.bytes": "100"}
    create_topic(talk, "a", config=config)
    model = Twin(talk)
    for number in range(rng.randint(20, 90)):
        producer = rng.randint(1, 4)
        value = b"%050d" % number
        match rng.choice(["write"] * 6 + ["outside"] * 2 + ["end"] * 3 + ["restart"]):
            case "write":
                model.write(producer, value, rng.randint(1, 3))
            case "outside":
                model.write_outside(value)
            case "end":
                model.end(producer, commit=rng.random() < 0.5, raises_epoch=rng.random() < 0.5)
            case _:
                talk.restart(crash=rng.random() < 0.5)
        if rng.random() < 0.2:
            start = rng.randint(0, model.last_stable_offset)
            limit = rng.choice([1, 150, 400, 1 << 20])
            assert model.shown(start, partition_max_bytes=limit) == model.expected(start)
    assert len(model.partition.log.segments) > 1 or config["segment.bytes"] == "99999"
    for limit in (1, 250, 1 << 20):
        assert model.shown(partition_max_bytes=limit) == model.expected()
    talk.restart(crash=True)
    assert model.shown() == model.expected()
