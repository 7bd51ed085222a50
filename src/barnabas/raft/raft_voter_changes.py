"""Changes of the voter set: one voter at a time, and only after the leader's first commit.

Two voter sets that differ by one voter share a node in any two majorities, so different sets cannot
elect two leaders. Two changes in progress at once break that, and so does a change by a leader that
does not yet know what was committed before it (the single-server bug of 2015; KAFKA-17608).

A new voter is an observer first, and joins the set after it has caught up: a set with a voter that
lags tolerates fewer failures. The first voter set of the log is special. It is the one of the
settings, with the directory ids that the leader has learned.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.effects import Address
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.raft.voters import NO_DIRECTORY, ReplicaKey, Voter, VoterSet

if TYPE_CHECKING:
    from barnabas.raft.leading import Leader

Outcome = tuple[ErrorCode, str]
DONE: Outcome = (ErrorCode.NONE, "")


class Joining:
    """An observer that is to become a voter, and has not caught up yet."""

    def __init__(self, voter: Voter, *, wait_for_commit: bool) -> None:
        self.voter = voter
        self.wait_for_commit = wait_for_commit
        self.pending: Pending[Outcome] = Pending()
        self.cancel_timer: Callable[[], None] = lambda: None


class VoterChanges:
    """Adds, removes and updates voters for one leader."""

    def __init__(self, leader: "Leader") -> None:
        self._leader = leader
        self._voters = leader.voters
        self._committed = leader.committed
        self._joining: Joining | None = None
        self._uncommitted: list[tuple[int, Pending[Outcome]]] = []

    def may_change(self) -> bool:
        """Whether no other change is in progress, and the leader knows all that was committed."""
        return self._leader.active and self._is_set_committed()

    def _is_set_committed(self) -> bool:
        return self._voters.history.offset < self._committed.high_watermark

    def add(
        self, voter: Voter, timeout_ms: int, *, wait_for_commit: bool
    ) -> Pending[Outcome] | Outcome:
        """Make an observer a voter after it has caught up."""
        if self._voters.current.find(voter.id) is not None:
            return ErrorCode.DUPLICATE_VOTER, f"{voter.id} is a voter already; remove it first"
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        joining = self._joining = Joining(voter, wait_for_commit=wait_for_commit)
        timer = self._leader.timers.after(max(1, timeout_ms), lambda: self._time_out(joining))
        joining.cancel_timer = timer.cancel
        self._add_if_caught_up()
        return joining.pending

    def remove(self, key: ReplicaKey) -> Pending[Outcome] | Outcome:
        """Remove a voter from the set."""
        voters = self._voters.current
        found = voters.find(key.id)
        if found is None or found.directory != key.directory:
            return ErrorCode.VOTER_NOT_FOUND, f"{key.id} with this directory is not a voter"
        if len(voters) == 1:
            return ErrorCode.INVALID_REQUEST, "the last voter cannot be removed"
        refusal = self._refusal()
        return refusal if refusal is not None else self._append(voters.without(key.id))

    def update_address(self, key: ReplicaKey, address: Address) -> Pending[Outcome] | Outcome:
        """Change the address of a voter."""
        voters = self._voters.current
        found = voters.find(key.id)
        if found is None or found.directory != key.directory:
            return ErrorCode.VOTER_NOT_FOUND, f"{key.id} with this directory is not a voter"
        if found.address == address:
            return DONE
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        return self._append(voters.with_voter(found._replace(address=address)))

    def replica_fetched(self) -> None:
        """Act on the progress of a replica: a change may have waited for it."""
        self._make_due_changes()

    def advanced(self) -> None:
        """Act on a higher high watermark: answer committed changes, and make the next."""
        high_watermark = self._committed.high_watermark
        ready = [pending for end, pending in self._uncommitted if end <= high_watermark]
        self._uncommitted = [entry for entry in self._uncommitted if entry[0] > high_watermark]
        for pending in ready:
            pending.complete(DONE)
        is_removed = self.may_change() and not self._voters.include_this_node
        if is_removed:
            self._leader.elections.resign()
        else:
            self._make_due_changes()

    def fail_all(self) -> None:
        """Answer all waiting requests: this node does not lead any more."""
        joining, self._joining = self._joining, None
        uncommitted, self._uncommitted = self._uncommitted, []
        lost = (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "the leader changed; the new leader may still commit the change",
        )
        if joining is not None:
            joining.cancel_timer()
            joining.pending.complete(lost)
        for _, pending in uncommitted:
            pending.complete(lost)

    def _make_due_changes(self) -> None:
        """Make the changes that are due; if the disk refuses, the next fetch tries again."""
        with suppress(OSError):
            self._record_bootstrap()
            self._add_if_caught_up()

    def _refusal(self) -> Outcome | None:
        if not self._voters.current.directories_known:
            return (
                ErrorCode.REQUEST_TIMED_OUT,
                "the directory ids of some voters are not known yet; try again",
            )
        if self._joining is not None or not self.may_change():
            return ErrorCode.REQUEST_TIMED_OUT, "another voter change is in progress; try again"
        return None

    def _add_if_caught_up(self) -> None:
        joining = self._joining
        if joining is None or not self.may_change() or not self._caught_up(joining.voter.key):
            return
        written = self._append(self._voters.current.with_voter(joining.voter))
        self._joining = None
        joining.cancel_timer()
        if joining.wait_for_commit:
            written.when_done(joining.pending.complete)
        else:
            joining.pending.complete(DONE)

    def _caught_up(self, key: ReplicaKey) -> bool:
        recent_ms = self._leader.timers.now_ms - self._leader.timeouts.fetch_ms
        return any(
            replica.key == key
            and replica.contact_ms >= recent_ms
            and replica.end_offset >= self._committed.high_watermark
            for replica in self._leader.replicas
        )

    def _time_out(self, joining: Joining) -> None:
        if self._joining is joining:
            self._joining = None
        late = (ErrorCode.REQUEST_TIMED_OUT, "the new voter did not catch up in time")
        joining.pending.complete(late)

    def _record_bootstrap(self) -> None:
        """Append the voter set of the settings once the directory of every voter is known."""
        voters = self._voters.current
        if voters.directories_known or not self.may_change():
            return
        learned = []
        for voter in voters:
            if voter.directory == NO_DIRECTORY:
                directory = self._directory_of(voter)
                if directory is None:
                    return
                voter = voter._replace(directory=directory)  # noqa: PLW2901
            learned.append(voter)
        self._append(VoterSet(learned))

    def _directory_of(self, voter: Voter) -> bytes | None:
        identity = self._leader.identity
        if voter.id == identity.node_id:
            return identity.directory
        replica = self._leader.replicas.of(voter)
        known = replica is not None and replica.end_offset >= 0
        return replica.key.directory if known and replica is not None else None

    def _append(self, voters: VoterSet) -> Pending[Outcome]:
        leader = self._leader
        pending: Pending[Outcome] = Pending()
        epoch, now_ms = leader.elections.epoch, leader.timers.wall_ms
        end = leader.log.append_control([voters.record()], epoch, now_ms)
        self._uncommitted.append((end, pending))
        leader.voters_appended()
        return pending


def voter_of(node_id: int, directory: bytes, listeners: list[tuple[str, int]]) -> Voter:
    """Read a voter from a request that names it."""
    if not listeners:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "a voter needs a listener; the request names none"
        )
    return Voter(NodeId(node_id), directory, Address(*listeners[0]))
