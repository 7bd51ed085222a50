"""Checks the share coordinators: what a leader has stored, the next leader reads.

The checks stand between the share partitions of a broker and its share coordinators. A leader that
reads the state fences earlier leaders: their writes must fail from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import (
    DeliveryState,
    SharePartitionKey,
    ShareStates,
    StateSummary,
    StateUpdate,
    StoredState,
)
from barnabas.sim.checks.share_window_checks import ShareWindowChecks
from barnabas.sim.world import InvariantError

Rank = tuple[int, bool]
"""How far an offset is: its delivery count, and whether it is complete."""
COMPLETE = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


@dataclass
class Stored:
    """What is certainly stored of one share partition."""

    start: int = -1
    ranks: dict[int, Rank] = field(default_factory=dict)
    leader_epoch: int = -1
    """The newest leader that has read the state."""


class ShareStateChecks:
    """What is certainly stored of all share partitions."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        """What is wrong; the broker would take an error for its own, so they are raised later."""
        self._by_key: dict[SharePartitionKey, Stored] = {}

    def check(self, _: object) -> None:
        """Raise what was found in the last event."""
        if self.problems:
            raise InvariantError(self.problems[0])

    def of(self, key: SharePartitionKey) -> Stored:
        """Return what is certainly stored of a share partition."""
        return self._by_key.setdefault(key, Stored())


class WatchedStates:
    """Passes the questions of one broker on, and checks the answers."""

    def __init__(
        self,
        states: ShareStates,
        checks: ShareStateChecks,
        windows: ShareWindowChecks,
        node_id: int,
    ) -> None:
        self._states = states
        self._checks = checks
        self._windows = windows
        self._node_id = node_id

    def initialize(
        self, group_id: str, topic_id: TopicId, starts: Mapping[int, int], state_epoch: int
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Initialize partitions of a topic."""
        return self._states.initialize(group_id, topic_id, starts, state_epoch)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Pending[StoredState]:
        """Return the stored state, which must have all that was stored before."""
        known = self._checks.of(key)
        before, start = dict(known.ranks), known.start

        def check(found: StoredState) -> StoredState:
            known.leader_epoch = max(known.leader_epoch, leader_epoch)
            self._windows.loaded[key, leader_epoch, self._node_id] = found
            if found.start_offset < start:
                self._checks.problems.append(
                    f"{key} is stored with the start {found.start_offset}, and had {start}"
                )
            self._check_ranks(key, found, before)
            return found

        return self._states.read(key, leader_epoch).map(check)

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        """Store a change; it must fail if a newer leader has read the state before."""
        known = self._checks.of(key)
        newest = known.leader_epoch

        def check(_: None) -> None:
            if update.leader_epoch < newest:
                self._checks.problems.append(
                    f"the leader of epoch {update.leader_epoch} stored {update} of {key}, which "
                    f"the leader of epoch {newest} had read"
                )
            known.start = max(known.start, update.start_offset)
            for batch in update.batches:
                rank = (batch.deliveries, batch.state in COMPLETE)
                for offset in range(batch.first, batch.last + 1):
                    known.ranks[offset] = max(known.ranks.get(offset, rank), rank)

        return self._states.write(key, update).map(check)

    def delete(
        self, group_id: str, topic_id: TopicId, partitions: Sequence[int]
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Delete the state of partitions of a topic."""
        return self._states.delete(group_id, topic_id, partitions)

    def summarize(
        self, group_id: str, topic_id: TopicId, partitions: Mapping[int, int]
    ) -> Pending[Mapping[int, StateSummary | ErrorCode]]:
        """Return summaries of partitions of a topic."""
        return self._states.summarize(group_id, topic_id, partitions)

    def _check_ranks(
        self, key: SharePartitionKey, found: StoredState, before: Mapping[int, Rank]
    ) -> None:
        stored = {
            offset: (batch.deliveries, batch.state in COMPLETE)
            for batch in found.batches
            for offset in range(batch.first, batch.last + 1)
        }
        for offset, rank in before.items():
            if offset >= found.start_offset and stored.get(offset, (0, False)) < rank:
                self._checks.problems.append(
                    f"{key} has {offset} as {stored.get(offset)}, but {rank} was stored"
                )
