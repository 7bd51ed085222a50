"""Flips bits in the files of a stopped node, and flips them back.

Only files that the node relies on are damaged: logs, the metadata log, its snapshots and the
quorum's state, which hold acknowledged data; and indexes and producer snapshots, which are derived
from it.
"""

from pathlib import Path
from random import Random
from typing import NamedTuple

PATTERNS = {
    "log": "topics/*/*/*.log",
    "index": "topics/*/*/*.*index",
    "producers": "topics/*/*/*.snapshot",
    "epochs": "topics/*/*/leader-epoch-checkpoint",
    "metadata log": "__cluster_metadata/**/*.log",
    "metadata snapshot": "__cluster_metadata/**/*.checkpoint",
    "quorum state": "__cluster_metadata/**/quorum-state",
}
METADATA = {"metadata log", "metadata snapshot", "quorum state"}
"""Damage to these files may keep a node from starting; it then logs a message that says so."""


class Flip(NamedTuple):
    """One flipped bit."""

    kind: str
    path: Path
    position: int
    before: int
    after: int

    def undo(self) -> None:
        """Flip the bit back, unless something else was written there since."""
        if self.path.exists() and self.path.stat().st_size > self.position:
            with self.path.open("r+b") as file:
                file.seek(self.position)
                if file.read(1) == bytes([self.after]):
                    file.seek(self.position)
                    file.write(bytes([self.before]))


def flip_one(data: Path, rng: Random, kind: str | None = None) -> Flip | None:
    """Flip a bit in a random file of a kind, or of any kind; None if there is no such file."""
    kinds = [kind] if kind else rng.sample(sorted(PATTERNS), len(PATTERNS))
    for each in kinds:
        paths = sorted(p for p in data.glob(PATTERNS[each]) if p.is_file() and p.stat().st_size)
        if paths:
            return _flip(each, rng.choice(paths), rng)
    return None


def _flip(kind: str, path: Path, rng: Random) -> Flip:
    position = rng.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(position)
        before = file.read(1)[0]
        after = before ^ 1 << rng.randrange(8)
        file.seek(position)
        file.write(bytes([after]))
    return Flip(kind, path, position, before, after)
