"""Changing who votes: one voter at a time, and only after the leader's first commit.

Two sets that differ by one voter share a node in any two majorities, so no two leaders can be
elected by different sets. Two changes under way at once, or one begun by a leader that does not
yet know what was committed before it, break that (the single-server bug of 2015; KAFKA-17608).

A voter to be is an observer first, and is taken when it has caught up: a set with a voter that lags
has less to spare. The first set of the log is special: it is the one of the settings, with
the directory ids that the leader has learned.
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
    from barnabas.raft.machine import Raft

Outcome = tuple[ErrorCode, str]
DONE: Outcome = (ErrorCode.NONE, "")


class Joining:
    """A voter to be that has not caught up yet."""

    def __init__(self, voter: Voter, *, wait_for_commit: bool) -> None:
        self.voter = voter
        self.wait_for_commit = wait_for_commit
        self.pending: Pending[Outcome] = Pending()
        self.cancel_timer: Callable[[], None] = lambda: None


class Membership:
    """The changes that a leader is asked for."""

    def __init__(self, raft: "Raft", leader: "Leader") -> None:
        self._raft = raft
        self._leader = leader
        self._joining: Joining | None = None
        self._changing: list[tuple[int, Pending[Outcome]]] = []

    def may_change(self) -> bool:
        """Whether no other change is under way, and the leader knows all that was committed."""
        return self._leader.active and self._raft.log.history.offset < self._raft.high_watermark

    def add(
        self, voter: Voter, timeout_ms: int, *, wait_for_commit: bool
    ) -> Pending[Outcome] | Outcome:
        """Take an observer into the quorum once it has caught up."""
        if self._raft.voters.find(voter.id) is not None:
            return ErrorCode.DUPLICATE_VOTER, f"{voter.id} votes already; remove that one first"
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        joining = self._joining = Joining(voter, wait_for_commit=wait_for_commit)
        timer = self._raft.timers.after(max(1, timeout_ms), lambda: self._give_up_on(joining))
        joining.cancel_timer = timer.cancel
        self._take_in()
        return joining.pending

    def remove(self, key: ReplicaKey) -> Pending[Outcome] | Outcome:
        """Have a voter vote no more."""
        voters = self._raft.voters
        found = voters.find(key.id)
        if found is None or found.directory != key.directory:
            return ErrorCode.VOTER_NOT_FOUND, f"{key.id} with this directory does not vote"
        if len(voters) == 1:
            return ErrorCode.INVALID_REQUEST, "the last voter cannot be removed"
        refusal = self._refusal()
        return refusal if refusal is not None else self._change(voters.without(key.id))

    def move(self, key: ReplicaKey, address: Address) -> Pending[Outcome] | Outcome:
        """Note where a voter listens now."""
        voters = self._raft.voters
        found = voters.find(key.id)
        if found is None or found.directory != key.directory:
            return ErrorCode.VOTER_NOT_FOUND, f"{key.id} with this directory does not vote"
        if found.address == address:
            return DONE
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        return self._change(voters.with_voter(found._replace(address=address)))

    def fetched(self) -> None:
        """Hear of a copy's progress: it may be what somebody waits for."""
        self._go_on()

    def advanced(self) -> None:
        """Hear that more was committed."""
        high_watermark = self._raft.high_watermark
        ready = [pending for end, pending in self._changing if end <= high_watermark]
        self._changing = [entry for entry in self._changing if entry[0] > high_watermark]
        for pending in ready:
            pending.complete(DONE)
        voted_out = self.may_change() and not self._raft.is_voter
        if voted_out:
            self._raft.resign()
        else:
            self._go_on()

    def give_up(self) -> None:
        """Tell everyone who waits that this node leads no more."""
        joining, self._joining = self._joining, None
        changing, self._changing = self._changing, []
        lost = (ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader changed; the change may be made yet")
        if joining is not None:
            joining.cancel_timer()
            joining.pending.complete(lost)
        for _, pending in changing:
            pending.complete(lost)

    def _go_on(self) -> None:
        """Make the changes that are due; a disk that refuses is asked again at the next fetch."""
        with suppress(OSError):
            self._record_bootstrap()
            self._take_in()

    def _refusal(self) -> Outcome | None:
        if not self._raft.voters.directories_known:
            return ErrorCode.REQUEST_TIMED_OUT, "not every voter has been heard of yet; try again"
        if self._joining is not None or not self.may_change():
            return ErrorCode.REQUEST_TIMED_OUT, "another change is under way; try again"
        return None

    def _take_in(self) -> None:
        joining = self._joining
        if joining is None or not self.may_change() or not self._caught_up(joining.voter.key):
            return
        written = self._change(self._raft.voters.with_voter(joining.voter))
        self._joining = None
        joining.cancel_timer()
        if joining.wait_for_commit:
            written.when_done(joining.pending.complete)
        else:
            joining.pending.complete(DONE)

    def _caught_up(self, key: ReplicaKey) -> bool:
        recent_ms = self._raft.timers.now_ms - self._raft.settings.fetch_timeout_ms
        return any(
            replica.key == key
            and replica.contact_ms >= recent_ms
            and replica.end_offset >= self._raft.high_watermark
            for replica in self._leader.replicas
        )

    def _give_up_on(self, joining: Joining) -> None:
        if self._joining is joining:
            self._joining = None
        late = (ErrorCode.REQUEST_TIMED_OUT, "the new voter has not caught up in time")
        joining.pending.complete(late)

    def _record_bootstrap(self) -> None:
        """Write the set of the settings into the log once every directory in it is known."""
        raft = self._raft
        if raft.voters.directories_known or not self.may_change():
            return
        learned = []
        for voter in raft.voters:
            if voter.directory == NO_DIRECTORY:
                directory = self._directory_of(voter)
                if directory is None:
                    return
                voter = voter._replace(directory=directory)  # noqa: PLW2901
            learned.append(voter)
        self._change(VoterSet(learned))

    def _directory_of(self, voter: Voter) -> bytes | None:
        if voter.id == self._raft.me:
            return self._raft.directory
        replica = self._leader.replicas.of(voter)
        known = replica is not None and replica.end_offset >= 0
        return replica.key.directory if known and replica is not None else None

    def _change(self, voters: VoterSet) -> Pending[Outcome]:
        raft = self._raft
        pending: Pending[Outcome] = Pending()
        end = raft.log.append_control([voters.record()], raft.epoch, raft.timers.wall_ms)
        self._changing.append((end, pending))
        self._leader.append_voters()
        return pending


def voter_of(node_id: int, directory: bytes, listeners: list[tuple[str, int]]) -> Voter:
    """Read a voter from a request that names it."""
    if not listeners:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a voter needs a listener")
    return Voter(NodeId(node_id), directory, Address(*listeners[0]))
