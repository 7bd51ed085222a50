"""Tests the cache of repeated requests: bounded in bytes, and dropped with a generation."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.handlers import shapes as module
from barnabas.handlers.groups.commit_again import CommitShape
from barnabas.handlers.registry import dispatch
from barnabas.handlers.shapes import CHECK_INTERVAL_MS, CHECKED_AT_ONCE, CallerShapes, Shapes
from barnabas.model.callers import CLIENT_LISTENER, Caller, Listener, Principal
from barnabas.model.pending import Pending
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.support.talk.dialogue import CLIENT, Dialogue
from tests.support.talk.offset_requests import At, Position, commit_request, find_coordinator
from tests.support.talk.requests import create_topic

VERSION = 8
PARTITIONS = 200


class Committer:
    """Clients that commit, each over its own connection."""

    def __init__(self, folder: Path) -> None:
        self.talk = Dialogue(folder, {"groups.offsets_partitions": 1})
        self.shapes = Shapes(self.talk.node)
        self._of_anonymous = self.shapes.of(CLIENT)
        self._prefixes: dict[str, int] = {}
        find_coordinator(self.talk)
        create_topic(self.talk, "a", PARTITIONS)

    def commit(
        self,
        group: str,
        *,
        partitions: int = 1,
        member: str = "",
        generation: int = -1,
        caller: Caller = CLIENT,
    ) -> bool:
        """Commit; return whether the request took the fast path."""
        shapes = self.shapes.of(caller)
        positions: dict[At, int | Position] = {("a", number): 7 for number in range(partitions)}
        request = commit_request(group, positions, member=member, epoch=generation)
        frame = memoryview(bytearray(self.talk.frame(request, VERSION)))
        known = shapes.answer(frame, self._prefixes.get(group, 0), self.talk.now_ms)
        if known is not None:
            self.talk.settle()
            return True
        answer, context = dispatch(self.talk.node, frame, caller, self.talk.now_ms, shapes)
        if context.prefix_bytes:
            self._prefixes[group] = context.prefix_bytes
        assert isinstance(answer, Pending)
        self.talk.settle()
        return False

    def join(self, group: str, patience_ms: int = 10_000) -> Any:
        """Become the only member of a group; the requests to join are not repeated."""
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            protocol_type="other",
            protocols=protocols,
        )
        exchange = self.talk.send(request, 3)
        self.talk.pass_time(patience_ms)
        joined = exchange.answer
        asked = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
        )
        assert self.talk.ask(asked, 2).error_code == 0
        return joined


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def learn(committer: Committer, group: str, partitions: int = 1) -> None:
    assert [committer.commit(group, partitions=partitions) for _ in range(2)] == [False, False]


def test_they_are_bounded_in_bytes(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(committer, "g", PARTITIONS)
    one = committer.shapes.kept_bytes
    assert one > PARTITIONS * 100
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", 5 * one + one // 2)
    for number in range(20):
        learn(committer, f"{number:02}", PARTITIONS)
        assert committer.shapes.kept_bytes <= 5 * one + one // 2
    assert len(committer.shapes) == 5


def test_one_that_was_used_outlives_older_ones(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in ("a", "b", "c"):
        learn(committer, group)
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", committer.shapes.kept_bytes)
    assert committer.commit("a")
    learn(committer, "d")
    assert [committer.commit(group) for group in ("a", "c", "d", "b")] == [True, True, True, False]


def test_what_was_dropped_is_learnt_again(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(committer, "a")
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", committer.shapes.kept_bytes)
    learn(committer, "b")
    assert [committer.commit("a") for _ in range(2)] == [False, True]


def test_nothing_is_counted_twice(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(committer, "a", 3)
    kept = committer.shapes.kept_bytes
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", 0)
    learn(committer, "b")
    assert (committer.shapes.kept_bytes, len(committer.shapes)) == (0, 0)
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", 1 << 20)
    committer.commit("a", partitions=3)
    assert committer.shapes.kept_bytes == kept


def test_a_very_large_commit_is_not_remembered(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMIT_FRAME_BYTES_MAX", 1_000)
    for _ in range(3):
        assert not committer.commit("g", partitions=PARTITIONS)
    assert len(committer.shapes) == 0


def test_they_go_when_the_member_leaves(committer: Committer) -> None:
    joined = committer.join("g")
    who = {"member": joined.member_id, "generation": joined.generation_id}
    assert [committer.commit("g", **who) for _ in range(3)] == [False, False, True]
    learn(committer, "other")
    assert len(committer.shapes) == 2
    leaver = MemberIdentity(member_id=joined.member_id)
    committer.talk.ask(LeaveGroupRequest(group_id="g", members=[leaver]), 5)
    committer.talk.pass_time(CHECK_INTERVAL_MS)
    assert len(committer.shapes) == 1
    assert committer.commit("other"), "a group that accepts commits keeps the fast path"


def test_they_go_with_the_generation(committer: Committer) -> None:
    joined = committer.join("g")
    who = {"member": joined.member_id, "generation": joined.generation_id}
    for _ in range(2):
        committer.commit("g", **who)
    committer.talk.pass_time(CHECK_INTERVAL_MS)
    assert len(committer.shapes) == 1
    committer.join("g", 300_000)
    committer.talk.pass_time(CHECK_INTERVAL_MS)
    assert len(committer.shapes) == 0
    assert committer.shapes.kept_bytes == 0


def test_few_are_checked_at_once(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[CommitShape] = []
    own = committer.talk.node.coordinators.groups

    def is_over(shape: CommitShape) -> bool:
        if shape._coordinators is own:  # a broker of another test may run in this process
            checked.append(shape)
        return False

    monkeypatch.setattr(CommitShape, "is_over", is_over)
    for number in range(CHECKED_AT_ONCE + 1):
        learn(committer, f"g{number}")
    turns = []
    for _ in range(3):
        committer.talk.pass_time(CHECK_INTERVAL_MS)
        turns.append(len(set(checked)))
    assert turns == [CHECKED_AT_ONCE, CHECKED_AT_ONCE + 1, CHECKED_AT_ONCE + 1]


# --- callers are kept apart ---


ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
OTHER_LISTENER = Listener("INTERNAL")


def called(principal: Principal, listener: Listener = CLIENT_LISTENER) -> Caller:
    return Caller(principal, listener, "10.0.0.1")


def teach(committer: Committer, group: str, caller: Caller) -> CallerShapes:
    """Let a caller commit until the fast path serves it; keep its connection open."""
    shapes = committer.shapes.of(caller)
    taken = [committer.commit(group, caller=caller) for _ in range(3)]
    assert taken == [False, False, True]
    return shapes


@pytest.mark.parametrize(
    "other", [called(BOB), called(ALICE, OTHER_LISTENER), CLIENT], ids=["bob", "listener", "none"]
)
def test_a_shape_serves_its_own_caller_alone(committer: Committer, other: Caller) -> None:
    kept = teach(committer, "g", called(ALICE))
    assert not committer.commit("g", caller=other), "another caller's shape was used"
    assert committer.commit("g", caller=called(ALICE))
    assert kept is committer.shapes.of(called(ALICE))


def test_connections_of_one_caller_share_shapes(committer: Committer) -> None:
    kept = teach(committer, "g", called(ALICE))
    elsewhere = Caller(ALICE, CLIENT_LISTENER, "10.0.0.9")
    assert committer.shapes.of(elsewhere) is kept
    assert committer.commit("g", caller=elsewhere)


def test_all_shapes_of_a_principal_are_dropped_at_once(committer: Committer) -> None:
    callers = [called(ALICE), called(ALICE, OTHER_LISTENER), called(BOB)]
    kept = [teach(committer, f"g{number}", caller) for number, caller in enumerate(callers)]
    assert len(committer.shapes) == 3
    committer.shapes.forget(ALICE)
    assert len(committer.shapes) == 1
    assert committer.commit("g2", caller=callers[2])
    for number in (0, 1):
        teach(committer, f"g{number}", callers[number])  # on the open connections
    assert kept == [committer.shapes.of(caller) for caller in callers]


def test_shapes_without_connections_are_dropped_as_the_oldest(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = committer.shapes.of(called(ALICE))
    for _ in range(2):
        committer.commit("g", caller=called(ALICE))
    del shapes
    monkeypatch.setattr(module, "SHAPES_BYTES_MAX", committer.shapes.kept_bytes)
    kept = teach(committer, "h", called(BOB))
    assert len(committer.shapes) == 1
    assert kept is committer.shapes.of(called(BOB))
