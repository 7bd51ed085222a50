"""What a broker notes about all its logs: up to where they are synced, and whether it left well.

The recovery points may be old, which costs time at the next start and nothing else. The clean
marker is written last of all on the way down and taken away first of all on the way up.
"""

from collections.abc import Mapping

from barnabas.model.ids import TopicPartition
from barnabas.model.ports import Disk

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CLEAN_MARKER = ".clean-shutdown"


class Checkpoints:
    """Small files at the root of the data folder."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._points = f"{folder}/{RECOVERY_POINTS}"
        self._marker = f"{folder}/{CLEAN_MARKER}"

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Read the points; a damaged file only means that more is checked."""
        if not self._disk.exists(self._points):
            return {}
        points = {}
        for line in self._disk.read_bytes(self._points).decode(errors="replace").split("\n")[2:]:
            parts = line.split(" ")
            if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
                points[TopicPartition(parts[0], int(parts[1]))] = int(parts[2])
        return points

    def write_recovery_points(self, points: Mapping[TopicPartition, int]) -> None:
        """Store the points, in Kafka's layout."""
        lines = ["0", str(len(points))]
        lines += [f"{name.topic} {name.partition} {offset}" for name, offset in points.items()]
        self._disk.write_atomic(self._points, ("\n".join(lines) + "\n").encode())

    def take_clean_marker(self) -> bool:
        """Tell whether the last stop was clean, and forget it."""
        clean = self._disk.exists(self._marker)
        self._disk.remove(self._marker)
        return clean

    def write_clean_marker(self) -> None:
        """Say that everything is on disk."""
        self._disk.write_atomic(self._marker, b"barnabas\n")
