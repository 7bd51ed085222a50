"""Which leader wrote from which offset on: the memory that makes truncation exact (KIP-101).

Stored as Kafka stores it, in `leader-epoch-checkpoint`: a version, a count, then a line with
epoch and start offset for each. The file is written when a segment is sealed and when the log is
closed, not on each change: every batch carries its epoch, and recovery reads what came after.
"""

from barnabas.model.errors import StorageError
from barnabas.model.ports import Disk

FILE_NAME = "leader-epoch-checkpoint"


class LeaderEpochs:
    """Epochs and the offsets they start at, both strictly ascending."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{FILE_NAME}"
        self.entries: list[tuple[int, int]] = []

    def load(self) -> None:
        """Read the checkpoint, if there is one."""
        if not self._disk.exists(self._path):
            return
        lines = self._disk.read_bytes(self._path).decode().split("\n")
        try:
            count = int(lines[1])
            pairs = [line.split(" ") for line in lines[2 : 2 + count]]
            self.entries = [(int(epoch), int(start)) for epoch, start in pairs]
        except (ValueError, IndexError) as error:
            raise StorageError(f"{self._path} cannot be read: {error}") from error

    def assign(self, epoch: int, start_offset: int) -> None:
        """Remember that an epoch starts at an offset."""
        if self.entries and self.entries[-1][0] >= epoch:
            return
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()  # an epoch that wrote nothing
        self.entries.append((epoch, start_offset))

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the largest epoch not above the asked one, and the offset where it ends.

        (-1, -1) where the asked epoch is later than any that is known.
        """
        if not self.entries or epoch < 0 or epoch > self.entries[-1][0]:
            return -1, -1
        if epoch == self.entries[-1][0]:
            return epoch, log_end
        found = epoch  # before the first that is known, where the log now starts
        for known, start in self.entries:
            if known > epoch:
                return found, start
            found = known
        raise AssertionError("the last entry is later than the asked epoch")

    def epoch_for(self, offset: int) -> int:
        """Return the epoch in which an offset was written, -1 where it is not known."""
        found = -1
        for epoch, start in self.entries:
            if start > offset:
                break
            found = epoch
        return found

    def truncate_end(self, end_offset: int) -> None:
        """Forget epochs that start at or after the new end of the log."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if kept != self.entries:
            self.entries = kept
            self.store()

    def truncate_start(self, start_offset: int) -> None:
        """Let the first epoch start no earlier than the log does."""
        later = [entry for entry in self.entries if entry[1] > start_offset]
        earlier = [entry for entry in self.entries if entry[1] <= start_offset]
        kept = [(earlier[-1][0], start_offset), *later] if earlier else later
        if kept != self.entries:
            self.entries = kept
            self.store()

    def store(self) -> None:
        """Write the checkpoint."""
        lines = ["0", str(len(self.entries)), *(f"{e} {s}" for e, s in self.entries), ""]
        self._disk.write_atomic(self._path, "\n".join(lines).encode(), sync=False)
