"""Tests that the fast path of OffsetCommit and the handler agree byte for byte, also on disk."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.handlers.produce_fetch.produce_again import PacedAnswer
from barnabas.handlers.registry import dispatch
from barnabas.handlers.shapes import LESSONS_MAX, Shapes
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.examples import examples
from tests.support.talk.dialogue import CLIENT, Dialogue
from tests.support.talk.offset_requests import (
    At,
    Position,
    commit_request,
    committed,
    find_coordinator,
)
from tests.support.talk.requests import create_topic

COMMITS = range(2, 11)


class Member:
    """A member that commits over one connection, with or without the fast path."""

    def __init__(self, folder: Path, *, fast: bool) -> None:
        self.talk = Dialogue(folder, {"groups.offsets_partitions": 2})
        self.shapes = Shapes(self.talk.node).of(CLIENT) if fast else None
        self.prefix_bytes = 0
        self.fast_answers = 0
        find_coordinator(self.talk)
        self.topic_id = create_topic(self.talk, "a", 3)

    def commit(self, group: str, positions: dict[At, int | Position], version: int) -> bytes:
        named: dict[At, int | Position] = {
            (self.topic_id if version >= 10 else topic, partition): position
            for (topic, partition), position in positions.items()
        }
        frame = memoryview(bytearray(self.talk.frame(commit_request(group, named), version)))
        if self.shapes is not None and self.prefix_bytes:
            known = self.shapes.answer(frame, self.prefix_bytes, self.talk.now_ms)
            if known is not None:
                self.fast_answers += 1
                assert not isinstance(known, PacedAnswer), "commits have no quota of bytes"
                return known[4:] if isinstance(known, bytes) else self._when_done(known)
        answer, context = dispatch(self.talk.node, frame, CLIENT, self.talk.now_ms, self.shapes)
        self.prefix_bytes = context.prefix_bytes
        assert isinstance(answer, Pending)
        return self._when_done(answer)

    def stored(self) -> list[bytes]:
        """Return all records of the internal topic."""
        logs = self.talk.node.by_topic_name["__consumer_offsets"]
        found = []
        for partition in logs.values():
            place = partition.log.read(0, 1 << 20, partition.log.end_offset, at_least_one=True)
            if place is not None:
                found.append(bytes(place.file.read(place.position, place.length)))
        return found

    def _when_done(self, pending: Pending[list[Chunk]]) -> bytes:
        got: list[list[Chunk]] = []
        pending.when_done(got.append)
        self.talk.settle()
        assert got, "the node has not answered"
        return b"".join(chunk for chunk in got[0] if isinstance(chunk, bytes | bytearray))


partitions = st.integers(0, 4)
positions = st.builds(
    Position, st.integers(-1, (1 << 63) - 1), st.sampled_from((-1, 3)), st.sampled_from(("", "ü"))
)
steps = st.tuples(
    st.sampled_from(("g", "h")), st.dictionaries(partitions, positions, min_size=1, max_size=3)
)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    version=st.sampled_from(COMMITS),
    kinds=st.lists(steps, min_size=1, max_size=3),
    data=st.data(),
)
def test_both_ways_answer_and_store_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    kinds: list[tuple[str, dict[int, Position]]],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("twins")
    slow, fast = Member(folder / "slow", fast=False), Member(folder / "fast", fast=True)
    for group, kind in data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=10)):
        shift = data.draw(st.integers(0, 1000))
        asked: dict[At, int | Position] = {
            ("a", partition): position._replace(offset=position.offset // 2 + shift)
            for partition, position in kind.items()
        }
        assert slow.commit(group, asked, version) == fast.commit(group, asked, version)
        for member in (slow, fast):
            member.talk.pass_time(10)
    for group in ("g", "h"):
        assert committed(slow.talk, group) == committed(fast.talk, group)
    # The ids of the topics differ between the two nodes.
    ids = (bytes(slow.topic_id), bytes(fast.topic_id))
    assert [text.replace(ids[0], ids[1])[61:] for text in slow.stored()] == [
        text[61:] for text in fast.stored()
    ]


@pytest.mark.parametrize("version", COMMITS)
def test_the_fast_path_is_taken(tmp_path: Path, version: int) -> None:
    member = Member(tmp_path, fast=True)
    for offset in range(5):
        member.commit("g", {("a", 0): offset, ("a", 2): offset}, version)
    assert member.fast_answers == 3
    assert committed(member.talk, "g") == {("a", 0): Position(4), ("a", 2): Position(4)}


def test_a_member_that_connects_often_keeps_the_fast_path(tmp_path: Path) -> None:
    member = Member(tmp_path, fast=True)
    for connection in range(2 * LESSONS_MAX):
        member.prefix_bytes = 0
        for offset in range(2):
            member.commit("g", {("a", 0): 10 * connection + offset}, 9)
    assert member.fast_answers == 2 * LESSONS_MAX - 1
    assert committed(member.talk, "g") == {("a", 0): Position(20 * LESSONS_MAX - 9)}


def test_a_new_leader_epoch_is_learnt_anew(tmp_path: Path) -> None:
    member = Member(tmp_path, fast=True)
    for epoch in (1, 2):
        for offset in range(4):
            member.commit("g", {("a", 0): Position(offset, epoch, "")}, 9)
    assert member.fast_answers == 2 + 3


def test_it_ends_with_the_topic(tmp_path: Path) -> None:
    member = Member(tmp_path, fast=True)
    for offset in range(3):
        member.commit("g", {("a", 0): offset}, 9)
    assert member.fast_answers == 1
    member.talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]))
    refused = member.commit("g", {("a", 0): 3}, 9)
    assert member.fast_answers == 1
    unknown = Member(tmp_path / "other", fast=False).commit("g", {("b", 0): 3}, 9)
    assert refused[4:] == unknown[4:].replace(b"b", b"a")


def test_a_topic_that_grows_changes_nothing(tmp_path: Path) -> None:
    member = Member(tmp_path, fast=True)
    for offset in range(3):
        member.commit("g", {("a", 0): offset}, 9)
    grown = CreatePartitionsTopic(name="a", count=5, assignments=None)
    member.talk.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=1000))
    member.commit("g", {("a", 0): 9}, 9)
    assert member.fast_answers == 2
    assert committed(member.talk, "g") == {("a", 0): Position(9)}
