"""Voter sets: the nodes whose majority decides on metadata.

A voter is a node id and a directory id. A node that lost its disk comes back under the same id
with another directory, and must not count as the voter that acknowledged records (KIP-853). The
voters in the settings have no directory ids. The first leader learns the ids and writes the set
into the log; from then on the log defines the voters. Until every voter has that record, a lost
disk cannot be distinguished from a new one. So all voters of a new cluster should run at the same
time once.

A voter set is in effect as soon as it is appended, committed or not. Truncation of its record
restores the set before it (Raft dissertation, 4.1).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.effects import Address
from barnabas.model.errors import ConfigError
from barnabas.model.ids import NodeId
from barnabas.protocol.messages import voters_record

NO_DIRECTORY = bytes(16)
LISTENER = "PEER"


class ReplicaKey(NamedTuple):
    """One replica of the log: a node with its directory. A directory of zeros is unknown."""

    id: NodeId
    directory: bytes


class Voter(NamedTuple):
    """A voter of the quorum and its address for other members."""

    id: NodeId
    directory: bytes
    address: Address

    @property
    def key(self) -> ReplicaKey:
        """The voter without its address."""
        return ReplicaKey(self.id, self.directory)


def parse_voter(text: str) -> Voter:
    """Read `id@host:port` from the settings."""
    number, _, place = text.partition("@")
    host, _, port = place.rpartition(":")
    if not (number.isdecimal() and host and port.isdecimal()):
        raise ConfigError(
            f"{text!r} does not name a voter; write id@host:port, such as 1@127.0.0.1:9093"
        )
    return Voter(NodeId(int(number)), NO_DIRECTORY, Address(host.strip("[]"), int(port)))


class VoterSet:
    """An immutable set of voters, sorted by id, with one entry for each id."""

    __slots__ = ("voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        self.voters = tuple(sorted(voters, key=lambda voter: voter.id))
        assert len({voter.id for voter in self.voters}) == len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __len__(self) -> int:
        return len(self.voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self.voters == other.voters

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VoterSet({[f'{v.id}:{v.directory.hex()[:4]}' for v in self.voters]})"

    @property
    def majority(self) -> int:
        """How many voters are a majority."""
        return len(self.voters) // 2 + 1

    @property
    def directories_known(self) -> bool:
        """Whether the directory of every voter is known."""
        return all(voter.directory != NO_DIRECTORY for voter in self.voters)

    def find(self, node_id: int) -> Voter | None:
        """Return the voter of an id."""
        return next((voter for voter in self.voters if voter.id == node_id), None)

    def includes(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter; one with an unknown directory is matched by id."""
        voter = self.find(key.id)
        return voter is not None and speaks_for(key, voter)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """Return the set with a voter added or replaced."""
        return VoterSet([*self.without(voter.id), voter])

    def without(self, node_id: int) -> "VoterSet":
        """Return the set without a voter."""
        return VoterSet(voter for voter in self.voters if voter.id != node_id)

    def record(self) -> voters_record.VotersRecord:
        """Return the set as a record for the log."""
        return voters_record.VotersRecord(
            voters=[
                voters_record.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory,
                    endpoints=[
                        voters_record.Endpoint(
                            name=LISTENER, host=voter.address.host, port=voter.address.port
                        )
                    ],
                    kraft_version_feature=voters_record.KRaftVersionFeature(
                        max_supported_version=1
                    ),
                )
                for voter in self.voters
            ]
        )

    @classmethod
    def of_record(cls, record: voters_record.VotersRecord) -> "VoterSet":
        """Read a set from a record of the log."""
        return cls(
            Voter(
                NodeId(voter.voter_id),
                voter.voter_directory_id,
                Address(voter.endpoints[0].host, voter.endpoints[0].port),
            )
            for voter in record.voters
        )


def speaks_for(key: ReplicaKey, voter: Voter) -> bool:
    """Whether a replica is this voter, and not its node with another disk."""
    return key.id == voter.id and voter.directory in (NO_DIRECTORY, key.directory)


class VoterHistory:
    """All voter sets of the log with their offsets, so that truncation restores the one before."""

    def __init__(self, bootstrap: Sequence[Voter]) -> None:
        self.bootstrap = VoterSet(bootstrap)
        self._entries: list[tuple[int, VoterSet]] = []

    @property
    def current(self) -> VoterSet:
        """The set in effect."""
        return self._entries[-1][1] if self._entries else self.bootstrap

    @property
    def offset(self) -> int:
        """The offset of the set in effect; -1 if the log has none."""
        return self._entries[-1][0] if self._entries else -1

    def at(self, end_offset: int) -> VoterSet | None:
        """Return the last set below an offset, if the log has one."""
        return next((voters for at, voters in reversed(self._entries) if at < end_offset), None)

    def add(self, offset: int, voters: VoterSet) -> None:
        """Put a set into effect that the log has at an offset."""
        self._entries.append((offset, voters))

    def truncate(self, end_offset: int) -> None:
        """Forget the sets at an offset and above."""
        self._entries = [entry for entry in self._entries if entry[0] < end_offset]

    def reset(self, offset: int, voters: VoterSet | None) -> None:
        """Start over from a snapshot that ends at an offset."""
        self._entries = [(offset - 1, voters)] if voters is not None else []
