"""Who votes on metadata.

A voter is an id and a directory id: a node that lost its disk comes back under the same id with
another directory, and must not speak for the one that acknowledged records (KIP-853). The set that
operators write into the settings knows no directories. The first leader learns them and writes the
set into the log; from then on the log says who votes. Until every voter has that record, a
lost disk cannot be told from a new one: a cluster should be whole once before it is relied on.

A set counts from the moment it is appended, committed or not, and is undone where its record is cut
away (Raft dissertation, 4.1).
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
    """One copy of the log: a node with its disk. A directory of zeros is not known."""

    id: NodeId
    directory: bytes


class Voter(NamedTuple):
    """A member of the quorum and where it listens for the others."""

    id: NodeId
    directory: bytes
    address: Address

    @property
    def key(self) -> ReplicaKey:
        """Who it is, wherever it listens."""
        return ReplicaKey(self.id, self.directory)


def parse_voter(text: str) -> Voter:
    """Read `id@host:port`, as the settings have it."""
    number, _, place = text.partition("@")
    host, _, port = place.rpartition(":")
    if not (number.isdecimal() and host and port.isdecimal()):
        raise ConfigError(f"{text!r} is no voter; write id@host:port, such as 1@127.0.0.1:9093")
    return Voter(NodeId(int(number)), NO_DIRECTORY, Address(host.strip("[]"), int(port)))


class VoterSet:
    """Those whose majority decides; sorted by id, one entry an id."""

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
        """How many of them decide."""
        return len(self.voters) // 2 + 1

    @property
    def directories_known(self) -> bool:
        """Whether every voter is known with its disk."""
        return all(voter.directory != NO_DIRECTORY for voter in self.voters)

    def find(self, node_id: int) -> Voter | None:
        """Return the voter of an id."""
        return next((voter for voter in self.voters if voter.id == node_id), None)

    def includes(self, key: ReplicaKey) -> bool:
        """Whether this copy votes; a voter whose directory is not known is known by its id."""
        voter = self.find(key.id)
        return voter is not None and speaks_for(key, voter)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """Return the set with one more, or with one replaced."""
        return VoterSet([*self.without(voter.id), voter])

    def without(self, node_id: int) -> "VoterSet":
        """Return the set with one less."""
        return VoterSet(voter for voter in self.voters if voter.id != node_id)

    def record(self) -> voters_record.VotersRecord:
        """Return the set as it stands in the log."""
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
        """Read a set from the log."""
        return cls(
            Voter(
                NodeId(voter.voter_id),
                voter.voter_directory_id,
                Address(voter.endpoints[0].host, voter.endpoints[0].port),
            )
            for voter in record.voters
        )


def speaks_for(key: ReplicaKey, voter: Voter) -> bool:
    """Whether a copy is the voter itself, and not its node with another disk."""
    return key.id == voter.id and voter.directory in (NO_DIRECTORY, key.directory)


class VoterHistory:
    """Every voter set of the log with the offset it stands at, so that a cut undoes it."""

    def __init__(self, bootstrap: Sequence[Voter]) -> None:
        self.bootstrap = VoterSet(bootstrap)
        self._entries: list[tuple[int, VoterSet]] = []

    @property
    def current(self) -> VoterSet:
        """The set that counts."""
        return self._entries[-1][1] if self._entries else self.bootstrap

    @property
    def offset(self) -> int:
        """Where the set that counts stands; -1 where the log has none."""
        return self._entries[-1][0] if self._entries else -1

    def at(self, end_offset: int) -> VoterSet | None:
        """Return the set that the log below an offset amounts to, if it has one."""
        return next((voters for at, voters in reversed(self._entries) if at < end_offset), None)

    def add(self, offset: int, voters: VoterSet) -> None:
        """Go by a set that stands at an offset."""
        self._entries.append((offset, voters))

    def truncate(self, end_offset: int) -> None:
        """Forget the sets from an offset on."""
        self._entries = [entry for entry in self._entries if entry[0] < end_offset]

    def reset(self, offset: int, voters: VoterSet | None) -> None:
        """Start over from a snapshot that ends at an offset."""
        self._entries = [(offset - 1, voters)] if voters is not None else []
