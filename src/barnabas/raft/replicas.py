"""The leader's view of the replicas of its log: their synced offsets and their last fetches.

A fetch is an acknowledgement: a replica fetches from an offset only after everything below is
synced.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.raft.voters import ReplicaKey, Voter, VoterSet, speaks_for

OBSERVER_SILENCE_MS = 5 * 60_000


@dataclass(slots=True)
class Replica:
    """One replica, as of its last fetch."""

    key: ReplicaKey
    end_offset: int = -1
    high_watermark: int = -1
    """The high watermark that the replica knows."""
    contact_ms: int = -1
    """When it last sent a request, by the monotonic clock."""
    fetched_wall_ms: int = -1
    caught_up_wall_ms: int = -1
    leader_end_offset: int = -1
    """The end of the leader's log at its last fetch: from there on it is caught up."""


class Replicas:
    """All replicas except the leader's own, by node and directory."""

    def __init__(self, me: ReplicaKey, since_ms: int) -> None:
        self.me = me
        self._since_ms = since_ms
        self._known: dict[ReplicaKey, Replica] = {}

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._known.values())

    def contacted(self, key: ReplicaKey, now_ms: int) -> Replica:
        """Record that a replica is alive."""
        replica = self._known.get(key)
        if replica is None:
            replica = self._known[key] = Replica(key)
        replica.contact_ms = now_ms
        return replica

    def fetched(
        self, key: ReplicaKey, offset: int, end_offset: int, now_ms: int, wall_ms: int
    ) -> Replica:
        """Record a fetch from an offset, and the end of the leader's log at that time."""
        replica = self.contacted(key, now_ms)
        if offset >= end_offset:
            replica.caught_up_wall_ms = wall_ms
        elif 0 <= replica.leader_end_offset <= offset:
            replica.caught_up_wall_ms = max(replica.caught_up_wall_ms, replica.fetched_wall_ms)
        replica.end_offset = offset
        replica.fetched_wall_ms, replica.leader_end_offset = wall_ms, end_offset
        return replica

    def of(self, voter: Voter) -> Replica | None:
        """Return a voter's replica; if several match, the one with the last contact."""
        matching = [r for key, r in self._known.items() if speaks_for(key, voter)]
        return max(matching, key=lambda replica: replica.contact_ms, default=None)

    def observers(self, voters: VoterSet, now_ms: int) -> list[Replica]:
        """Return the replicas that are no voters; forget those without recent contact."""
        silent = now_ms - OBSERVER_SILENCE_MS
        for key in [k for k, r in self._known.items() if r.contact_ms < silent]:
            if not voters.includes(key):
                del self._known[key]
        return [r for key, r in self._known.items() if not voters.includes(key)]

    def majority_offset(self, voters: VoterSet, own_offset: int) -> int:
        """Return the offset below which a majority of the voters has synced everything."""
        offsets = [
            own_offset if speaks_for(self.me, voter) else self._offset(voter) for voter in voters
        ]
        return sorted(offsets, reverse=True)[voters.majority - 1]

    def majority_contact_ms(self, voters: VoterSet, now_ms: int) -> int:
        """Return when a majority of the voters, including the leader, last had contact."""
        contacts = [
            now_ms if speaks_for(self.me, voter) else self._contact_ms(voter) for voter in voters
        ]
        return sorted(contacts, reverse=True)[voters.majority - 1]

    def _offset(self, voter: Voter) -> int:
        replica = self.of(voter)
        return -1 if replica is None else replica.end_offset

    def _contact_ms(self, voter: Voter) -> int:
        replica = self.of(voter)
        return self._since_ms if replica is None else max(self._since_ms, replica.contact_ms)
