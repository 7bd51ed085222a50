"""What a node must remember of elections, come what may: its epoch, its vote, its leader.

Were any of it forgotten, a node could vote twice in one epoch, and two would lead it. So the file
is synced before anything that was decided by it leaves the node, and a damaged one stops the
start: nobody can say what had been promised. Beside it lies the id of this directory, drawn once.
"""

from random import Random
from typing import NamedTuple

from barnabas.model.errors import StorageError
from barnabas.model.ids import NodeId
from barnabas.model.ports import Disk
from barnabas.raft.voters import ReplicaKey
from barnabas.storage.checkpoints import seal, unseal

STATE_FILE = "quorum-state"
DIRECTORY_FILE = "directory-id"


class QuorumState(NamedTuple):
    """An epoch, whom this node voted for in it, and who leads it."""

    epoch: int = 0
    leader_id: NodeId | None = None
    voted: ReplicaKey | None = None


class QuorumStateFile:
    """The state on disk."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self.path = f"{folder}/{STATE_FILE}"

    def load(self) -> QuorumState | None:
        """Return what was saved, if anything was; raise `StorageError` where it is damaged."""
        if not self._disk.exists(self.path):
            return None
        try:
            epoch, leader, voted_id, voted_directory = unseal(
                self._disk.read_bytes(self.path)
            ).split()
        except (StorageError, ValueError) as error:
            raise StorageError(
                f"{self.path} cannot be read: {error}; what this node voted is not known, so it "
                f"must not vote. Restore the file, or remove the node from the quorum, empty its "
                f"metadata folder and add it again"
            ) from error
        voted = None
        if voted_id != "-1":
            voted = ReplicaKey(NodeId(int(voted_id)), bytes.fromhex(voted_directory))
        return QuorumState(int(epoch), None if leader == "-1" else NodeId(int(leader)), voted)

    def save(self, state: QuorumState) -> None:
        """Make the state safe; only then may anybody hear of it."""
        leader = -1 if state.leader_id is None else state.leader_id
        voted = state.voted or ReplicaKey(NodeId(-1), bytes(16))
        text = f"{state.epoch} {leader} {voted.id} {voted.directory.hex()}\n"
        self._disk.write_atomic(self.path, seal(text), sync=self.synced())

    def synced(self) -> bool:
        """Whether a vote is on the drive before it is cast: always."""
        return True


def load_directory_id(disk: Disk, folder: str, rng: Random, *, new: bool) -> bytes:
    """Return the id of this folder; a new one is drawn where nothing was stored here before."""
    path = f"{folder}/{DIRECTORY_FILE}"
    if disk.exists(path):
        try:
            return bytes.fromhex(unseal(disk.read_bytes(path)).strip())
        except (StorageError, ValueError) as error:
            raise StorageError(f"{path} cannot be read: {error}; restore it") from error
    if not new:
        raise StorageError(f"{path} is missing beside a quorum state; restore it")
    directory = rng.randbytes(16)
    disk.write_atomic(path, seal(f"{directory.hex()}\n"))
    return directory
