"""Reads the progress of the jobs that read a table, from their checkpoints in the lake.

A micro-batch of Spark is complete when its number is in `commits`; the file of that number in
`offsets` has the position of its source. Spark never reads earlier data again.
"""

import json
import re
from pathlib import Path

from barnabas.telemetry.lake.lake import CHECKPOINTS, NOTES

READERS = {"silver": ("gold_10s", "gold_1m"), "gold_10s": ("findings",)}
"""The jobs that follow a table."""
_NUMBER = re.compile(r"batch-(\d{10})")


def consumed(lake: Path, table: str) -> int:
    """Return the last batch of a table that no job will read or write again; -1 for none.

    The newest complete batch is not included: Spark may run it again.
    """
    writer = last_complete(lake, table) - 1
    return min([writer, *(position(lake, job) for job in READERS.get(table, ()))])


def last_complete(lake: Path, table: str) -> int:
    """Return the newest batch of a table that has its note; -1 for none."""
    return max(note_numbers(lake, table), default=-1)


def note_numbers(lake: Path, table: str) -> list[int]:
    """Return the batches of a table that have a note."""
    folder = lake / NOTES / table
    names = (each.name for each in folder.iterdir()) if folder.is_dir() else ()
    return sorted(
        int(found[1]) for name in names if (found := re.fullmatch(r"batch-(\d{10})\.json", name))
    )


def position(lake: Path, job: str) -> int:
    """Return the last batch of its table that a job has committed; -1 if it never ran."""
    folder = lake / CHECKPOINTS / job
    committed = max(_numbers(folder / "commits"), default=None)
    if committed is None:
        return -1
    try:
        text = (folder / "offsets" / str(committed)).read_text(encoding="utf-8")
        at = json.loads(text.strip().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return -1
    if not isinstance(at, dict):
        return -1
    if "batch" in at:
        return int(at["batch"])
    return _last_note(folder / "sources" / "0", int(at["logOffset"])) if "logOffset" in at else -1


def _last_note(folder: Path, log: int) -> int:
    """Return the newest note that Spark's file source had listed in an entry of its log."""
    for name in (f"{log}", f"{log}.compact"):
        path = folder / name
        if path.is_file():
            found = _NUMBER.findall(path.read_text(encoding="utf-8"))
            if found:
                return max(map(int, found))
    return -1


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(each.name) for each in folder.iterdir() if each.name.isdecimal()]
