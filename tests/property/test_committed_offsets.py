"""Tests committed offsets against a model that keeps every commit and looks for the newest.

Plain commits, transactional commits, markers, deletions and reloads come in any order. The model
keeps only the history; the coordinator must agree with it.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from tests.support.talk.group_runner import GroupRunner
from tests.support.talk.offset_requests import (
    At,
    Position,
    codes,
    commit_request,
    delete_request,
    fetch_group,
    transactional_request,
)

TOPICS = {"a": 2, "b": 1}
PLACES: list[At] = [("a", 0), ("a", 1), ("b", 0)]
GROUPS = ["g", "h"]
PRODUCERS = [1, 2, 3]

groups = st.sampled_from(GROUPS)
producers = st.sampled_from(PRODUCERS)
some_places = st.sets(st.sampled_from(PLACES), min_size=1)
new_positions = st.dictionaries(
    st.sampled_from(PLACES),
    st.builds(
        Position,
        st.integers(-1, 1 << 40),
        st.integers(-1, 100),
        st.text(max_size=5) | st.sampled_from(["é", "\N{PILE OF POO}"]),
    ),
    min_size=1,
)


class Commit:
    """A commit in the model."""

    def __init__(self, group: str, at: At, position: Position, producer: int | None) -> None:
        self.group, self.at, self.position, self.producer = group, at, position, producer
        self.counts: bool | None = True if producer is None else None


class CommittedOffsets(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = GroupRunner(TOPICS)
        self.history: list[Commit] = []

    @rule(group=groups, positions=new_positions)
    def commit(self, group: str, positions: dict[At, Position]) -> None:
        request = commit_request(group, dict(positions))
        caller = self.runner.caller(9)
        answer = self.runner.run(lambda machine: machine.offsets.commit(request, caller))
        assert set(codes(answer).values()) == {0}
        self.remember(group, positions, None)

    @rule(group=groups, positions=new_positions, producer=producers)
    def commit_in_transaction(
        self, group: str, positions: dict[At, Position], producer: int
    ) -> None:
        request = transactional_request(group, dict(positions), (producer, 0))
        caller = self.runner.caller(5)
        answer = self.runner.run(
            lambda machine: machine.offsets.commit_in_transaction(request, caller)
        )
        assert set(codes(answer).values()) == {0}
        self.remember(group, positions, producer)

    @rule(producer=producers, committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self.runner.end_transaction(ProducerIdAndEpoch(producer, 0), committed=committed)
        for commit in self.open():
            if commit.producer == producer:
                commit.counts = committed

    @rule(group=groups, places=some_places)
    def delete(self, group: str, places: set[At]) -> None:
        if not self.exists(group):
            return
        request = delete_request(group, [(str(topic), part) for topic, part in places])
        self.runner.run(lambda machine: machine.offsets.delete(request))
        self.forget(lambda commit: commit.group == group and commit.at in places)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        if not self.exists(group):
            return
        self.runner.run(lambda machine: machine.delete_group(group))
        self.forget(lambda commit: commit.group == group)
        assert group not in self.runner.machine.groups

    @rule(topic=st.sampled_from(list(TOPICS)))
    def delete_topic(self, topic: str) -> None:
        self.runner.delete_topic(topic)
        self.runner.create_topic(topic, TOPICS[topic])
        self.forget(lambda commit: commit.at[0] == topic)

    @rule()
    def reload(self) -> None:
        self.runner.reload()

    @invariant()
    def everybody_reads_the_newest_commit_that_counts(self) -> None:
        for group in GROUPS:
            found = self.fetch(group, PLACES, stable=False)
            assert found == {at: self.newest(group, at) for at in PLACES}
            listed = self.fetch(group, None, stable=False)
            assert listed == {
                at: position for at, position in found.items() if self.any_counts(group, at)
            }

    @invariant()
    def what_waits_is_unstable_and_nothing_else(self) -> None:
        for group in GROUPS:
            asked = fetch_group(group, PLACES)
            answer = self.runner.run(
                lambda machine, asked=asked: machine.offsets.fetch(  # type: ignore[misc]
                    asked, 9, require_stable=True
                )
            )
            waiting = {commit.at for commit in self.open() if commit.group == group}
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert {at for at, code in codes(answer).items() if code == unstable} == waiting

    def remember(self, group: str, positions: dict[At, Position], producer: int | None) -> None:
        for at, position in positions.items():
            self.history.append(Commit(group, at, position, producer))

    def forget(self, matches: Any) -> None:
        self.history = [commit for commit in self.history if not matches(commit)]

    def open(self) -> list[Commit]:
        return [commit for commit in self.history if commit.counts is None]

    def exists(self, group: str) -> bool:
        return group in self.runner.machine.groups

    def any_counts(self, group: str, at: At) -> bool:
        return any(c.counts and (c.group, c.at) == (group, at) for c in self.history)

    def newest(self, group: str, at: At) -> Position:
        for commit in reversed(self.history):
            if commit.counts and (commit.group, commit.at) == (group, at):
                return commit.position
        return Position(-1)

    def fetch(self, group: str, places: list[At] | None, *, stable: bool) -> dict[At, Position]:
        asked = fetch_group(group, places)
        answer = self.runner.run(
            lambda machine: machine.offsets.fetch(asked, 9, require_stable=stable)
        )
        return {
            (topic.name, part.partition_index): Position(
                part.committed_offset, part.committed_leader_epoch, part.metadata
            )
            for topic in answer.topics
            for part in topic.partitions
        }


TestCommittedOffsets = CommittedOffsets.TestCase
