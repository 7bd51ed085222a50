"""Small checkpoint files for all logs of a broker, each protected by a checksum.

The recovery points may be old, which only costs time at the next start. They are kept by topic id,
so that those of a deleted topic do not apply to a new one of the same name. The clean marker is the
last file that a shutdown writes, and the first that a start removes.

A sealed file has a checksum on its last line: a number that lost a digit would be worse than none.
"""

from collections.abc import Mapping

from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.ports import Disk
from barnabas.protocol.crc import crc32c

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_MARKER = ".clean-shutdown"


def seal(text: str) -> bytes:
    """Return the text as a file's content, with its checksum."""
    assert text.endswith("\n")
    return f"{text}crc32c {crc32c(text.encode()):08x}\n".encode()


def unseal(content: bytes) -> str:
    """Return the sealed text; raise `StorageError` if the checksum does not match."""
    text, separator, line = content.rpartition(b"crc32c ")
    if not separator or line != f"{crc32c(text):08x}\n".encode():
        raise StorageError("it does not match its checksum")
    return text.decode()


def read_number(disk: Disk, path: str) -> int | None:
    """Return the number sealed in a file, if there is one; raise `StorageError` if damaged."""
    if not disk.exists(path):
        return None
    try:
        return int(unseal(disk.read_bytes(path)))
    except StorageError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def write_number(disk: Disk, path: str, number: int, *, sync: bool = True) -> None:
    """Seal a number in a separate file."""
    disk.write_atomic(path, seal(f"{number}\n"), sync=sync)


class Checkpoints:
    """The files at the root of the data folder."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._points = f"{folder}/{RECOVERY_POINTS}"
        self._high_watermarks = f"{folder}/{HIGH_WATERMARKS}"
        self._marker = f"{folder}/{CLEAN_MARKER}"

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Read the points, by topic id; a damaged file only means that more is checked."""
        return self._read(self._points)

    def write_recovery_points(self, points: Mapping[TopicPartition, int]) -> None:
        """Store the points, nearly in Kafka's layout."""
        self._write(self._points, points)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Read the high watermarks of replicas, by topic id.

        An old or missing one is harmless: a follower gets it again from its leader.
        """
        return self._read(self._high_watermarks)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the high watermarks, in the same layout."""
        self._write(self._high_watermarks, offsets)

    def _read(self, path: str) -> dict[TopicPartition, int]:
        if not self._disk.exists(path):
            return {}
        try:
            lines = unseal(self._disk.read_bytes(path)).splitlines()[2:]
        except StorageError:
            return {}
        parts = [line.split(" ") for line in lines]
        return {TopicPartition(topic, int(index)): int(offset) for topic, index, offset in parts}

    def _write(self, path: str, offsets: Mapping[TopicPartition, int]) -> None:
        lines = ["0", str(len(offsets))]
        lines += [f"{name.topic} {name.partition} {offset}" for name, offset in offsets.items()]
        self._disk.write_atomic(path, seal("\n".join(lines) + "\n"))

    def take_clean_marker(self) -> int | None:
        """Return the broker epoch in which the last stop was clean, and remove the marker.

        None says that it was not clean; -1 that it was, in an unknown epoch.
        """
        if not self._disk.exists(self._marker):
            return None
        words = self._disk.read_bytes(self._marker).split()
        self._disk.remove(self._marker)
        # If a power cut undid the removal, a torn log would count as a clean one.
        self._disk.sync_folder(self._folder)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else -1

    def write_clean_marker(self, broker_epoch: int = -1) -> None:
        """Sync everything, then write the clean marker."""
        self._disk.sync_all()
        self._disk.write_atomic(self._marker, f"barnabas {broker_epoch}\n".encode())
