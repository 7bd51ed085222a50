"""The leader epochs of a log and where each starts, which make truncation exact (KIP-101).

Stored nearly as in Kafka, in `leader-epoch-checkpoint`: a version, a count, then a line with epoch
and start offset for each. The file is written when a segment is sealed and when the log is closed,
not on each change: every batch has its epoch, and recovery reads the later ones from there.
"""

from barnabas.model.errors import StorageError
from barnabas.model.ports import Disk
from barnabas.storage.checkpoints import seal, unseal

NO_EPOCH = -1

FILE_NAME = "leader-epoch-checkpoint"


class LeaderEpochs:
    """Epochs and the offsets they start at, both strictly ascending."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self.path = f"{folder}/{FILE_NAME}"
        self.entries: list[tuple[int, int]] = []
        self._stored: list[tuple[int, int]] | None = None  # the file's content, if it is known

    @property
    def last(self) -> int:
        """The epoch of the last batch, -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def load(self) -> bool:
        """Read the checkpoint; return False if there is none; raise `StorageError` if damaged."""
        if not self._disk.exists(self.path):
            return False
        try:
            lines = unseal(self._disk.read_bytes(self.path)).splitlines()[2:]
        except StorageError as error:
            raise StorageError(f"{self.path} cannot be read: {error}") from error
        pairs = [line.split(" ") for line in lines]
        self.entries = [(int(epoch), int(start)) for epoch, start in pairs]
        self._stored = list(self.entries)
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that an epoch starts at an offset; an earlier epoch changes nothing."""
        if self.entries and self.entries[-1][0] >= epoch:
            return
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()  # an epoch that wrote nothing
        self.entries.append((epoch, start_offset))

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the largest epoch that is not above the given one, and the offset where it ends.

        (-1, -1) if the given epoch is later than any that is known.
        """
        if not self.entries or epoch == NO_EPOCH or epoch > self.entries[-1][0]:
            return -1, -1
        if epoch == self.entries[-1][0]:
            return epoch, log_end
        found = epoch  # earlier than the first known epoch, at which the log now starts
        for known, start in self.entries:
            if known > epoch:
                return found, start
            found = known
        raise AssertionError("the last entry is later than the asked epoch")

    def epoch_for(self, offset: int) -> int:
        """Return the epoch in which an offset was written, -1 if it is not known."""
        found = -1
        for epoch, start in self.entries:
            if start > offset:
                break
            found = epoch
        return found

    def truncate_end(self, end_offset: int) -> None:
        """Remove epochs that start at or after an offset: truncated, or to be read again."""
        self.entries = [entry for entry in self.entries if entry[1] < end_offset]

    def truncate_start(self, start_offset: int) -> None:
        """Move the start of the first epoch to that of the log, if it is earlier."""
        later = [entry for entry in self.entries if entry[1] > start_offset]
        earlier = [entry for entry in self.entries if entry[1] <= start_offset]
        self.entries = [(earlier[-1][0], start_offset), *later] if earlier else later

    def store(self) -> bool:
        """Write the checkpoint unless it is up to date; tell whether it was written."""
        if self.entries == self._stored:
            return False
        lines = ["0", str(len(self.entries)), *(f"{e} {s}" for e, s in self.entries), ""]
        self._disk.write_atomic(self.path, seal("\n".join(lines)), sync=False)
        self._stored = list(self.entries)
        return True
