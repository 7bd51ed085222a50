"""A lock that allows one run at a time on a lake.

Two runs would write under the same names and corrupt each other's checkpoints. It is a lock of the
operating system, which releases it when the process ends. A lake at a URI has no lock, only Spark's
own check of the checkpoint.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "_lock"


class LakeBusyError(Exception):
    """Another process runs jobs on the lake."""


@contextmanager
def held(lake: str) -> Iterator[None]:
    """Hold a lake for the block; raise if another process holds it."""
    if "://" in lake:
        yield
        return
    folder = Path(lake)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LakeBusyError(
                f"Another run holds {lake}; stop it first, or pass another --lake"
            ) from error
        yield
