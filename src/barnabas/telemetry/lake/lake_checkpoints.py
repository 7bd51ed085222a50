"""Reads and edits the Spark checkpoints that the jobs keep in the lake.

    LAKE/_checkpoints/silver/offsets/42    where batch 42 ends: a version, a document, a position
    LAKE/_checkpoints/silver/commits/42    batch 42 is done

    LAKE/_checkpoints/findings/sources/0/42    the files of batch 42, with their full paths

A batch starts where the previous one ended. A batch without a commit runs again with its stored
offsets.
"""

import json
from pathlib import Path
from typing import Any

from barnabas.telemetry.lake.lake import CHECKPOINTS, NOTES, Lake

VERSION = "v1"
NOWHERE = "{}"
"""A position without partitions: each is then read from its beginning, as a new one is."""
FOLLOWER = "findings"
"""The job that follows files of the lake by Spark's own source."""
COMMIT = f'{VERSION}\n{{"nextBatchWatermarkMs":0}}'


def position(lake: Lake, job: str) -> dict[str, Any] | None:
    """Return the end of a job's newest batch, by topic; None if there was no batch."""
    numbers = _numbers(lake, job, "offsets")
    if not numbers:
        return None
    lines = _lines(lake, job, numbers[-1])
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def start_over(lake: Lake, job: str) -> None:
    """Make the next batch of a job read its topic from the beginning.

    A batch that was planned but not completed is dropped, since its messages are those of the old
    topic. A batch that the lake has completed is done, even if Spark did not write its commit.
    """
    numbers = _numbers(lake, job, "offsets")
    if not numbers:
        return
    last = numbers[-1]
    is_committed = last in _numbers(lake, job, "commits")
    if not is_committed and lake.note(job, last) is None:
        _remove(lake, job, "offsets", last)
        last -= 1
    elif not is_committed:
        lake.put(_place(job, "commits", last), COMMIT.encode())
    if last in numbers:
        *head, _ = _lines(lake, job, last)
        _remove(lake, job, "offsets", last)
        lake.put(_place(job, "offsets", last), "\n".join([*head, NOWHERE]).encode())


def relocate(lake: Lake) -> None:
    """Adapt a lake that was moved or copied: Spark's list of files has their full paths."""
    folder = f"{CHECKPOINTS}/{FOLLOWER}/sources/0"
    root = lake.root.rstrip("/")
    place = root if "://" in root else Path(root).absolute().as_uri()
    for name in lake.names(folder):
        before = lake.text(f"{folder}/{name}") or ""
        after = "\n".join(_moved(line, place) for line in before.splitlines())
        if after != before:
            lake.remove(folder, [f".{name}.crc"])
            lake.put(f"{folder}/{name}", after.encode())


def _moved(line: str, place: str) -> str:
    """Return an entry of the list with its path below the new folder; other lines unchanged."""
    if not line.startswith("{"):
        return line
    entry = json.loads(line)
    root, found, rest = entry["path"].rpartition(f"/{NOTES}/")
    if not found or root == place:
        return line
    return json.dumps({**entry, "path": f"{place}{found}{rest}"}, separators=(",", ":"))


def _place(job: str, log: str, number: int) -> str:
    return f"{CHECKPOINTS}/{job}/{log}/{number}"


def _numbers(lake: Lake, job: str, log: str) -> list[int]:
    return sorted(int(n) for n in lake.names(f"{CHECKPOINTS}/{job}/{log}") if n.isdigit())


def _lines(lake: Lake, job: str, number: int) -> list[str]:
    text = lake.text(_place(job, "offsets", number))
    assert text is not None, "it was listed"
    return text.splitlines()


def _remove(lake: Lake, job: str, log: str, number: int) -> None:
    """Remove an entry with its checksum, which would not fit the next one of this name."""
    lake.remove(f"{CHECKPOINTS}/{job}/{log}", [str(number), f".{number}.crc"])
