"""The quorum-state file: the epoch, the vote and the leader that a node must not forget.

A node that forgot its vote could vote twice in an epoch, and two nodes could lead it. So the file
is synced before a response that depends on it leaves the node. A damaged file stops the start,
because the node's vote is then unknown. The directory id lies beside it; it is drawn once.
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
    """An epoch, its leader, and the candidate that this node voted for."""

    epoch: int = 0
    leader_id: NodeId | None = None
    voted: ReplicaKey | None = None


class QuorumStateFile:
    """Reads and writes the state on disk."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self.path = f"{folder}/{STATE_FILE}"

    def load(self) -> QuorumState | None:
        """Return the saved state, if there is one; raise `StorageError` if it is damaged."""
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
        """Write the state durably, before a response may depend on it."""
        leader = -1 if state.leader_id is None else state.leader_id
        voted = state.voted or ReplicaKey(NodeId(-1), bytes(16))
        text = f"{state.epoch} {leader} {voted.id} {voted.directory.hex()}\n"
        self._disk.write_atomic(self.path, seal(text), sync=self.synced())

    def synced(self) -> bool:
        """Whether a vote is synced before it is sent: always. A simulation mutant overrides it."""
        return True


class EpochState:
    """The quorum state in memory. What others rely on is saved before it changes here."""

    def __init__(self, file: QuorumStateFile) -> None:
        self.current = QuorumState()
        self._file = file
        self._missed: tuple[int, NodeId | None] | None = None

    def open(self, stored: QuorumState | None, log_epoch: int) -> None:
        """Start from the saved state; raise `StorageError` if it is missing beside a log."""
        if stored is None and log_epoch > 0:
            raise StorageError(
                f"{self._file.path} is missing beside a log of epoch {log_epoch}, so "
                f"this node's vote is unknown; restore the file"
            )
        self.current = stored or QuorumState(max(0, log_epoch))

    def save(self, state: QuorumState) -> None:
        """Change the state on disk and in memory; raises `OSError` if the disk refuses it."""
        if state != self.current:
            self._file.save(state)
            self.current = state

    def forget_leader(self) -> None:
        """Assume that the epoch has no leader. The vote stays on disk."""
        self.current = self.current._replace(leader_id=None)

    def miss_leader(self) -> None:
        """Give the leader up, and ignore for a while that other voters still name it.

        Otherwise two voters could convince each other in turn of a leader that is gone.
        """
        self._missed = (self.current.epoch, self.current.leader_id)
        self.forget_leader()

    def is_missed(self, leader_id: NodeId) -> bool:
        """Whether this node gave up that leader in this epoch."""
        return self._missed == (self.current.epoch, leader_id)

    def trust_others(self) -> None:
        """Believe again what other voters say about the leader."""
        self._missed = None


def load_directory_id(disk: Disk, folder: str, rng: Random, *, new: bool) -> bytes:
    """Return the id of this folder; draw one if nothing was stored here before."""
    path = f"{folder}/{DIRECTORY_FILE}"
    if disk.exists(path):
        try:
            return bytes.fromhex(unseal(disk.read_bytes(path)).strip())
        except (StorageError, ValueError) as error:
            raise StorageError(f"{path} cannot be read: {error}; restore the file") from error
    if not new:
        raise StorageError(f"{path} is missing beside a quorum-state file; restore the file")
    directory = rng.randbytes(16)
    disk.write_atomic(path, seal(f"{directory.hex()}\n"))
    return directory
