"""Commits a change of files to a table's Delta log, so that readers see all of it or none of it."""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

LOG = "_delta_log"
TRIES = 20


class DeltaBusyError(Exception):
    """Other writers commit so often that this commit never succeeds."""


def is_delta(table: Path) -> bool:
    """Return whether a table has a Delta log."""
    return (table / LOG).is_dir()


def active(table: Path) -> set[str]:
    """Return the names of the table's files."""
    from deltalake import DeltaTable

    return {uri.rpartition("/")[2] for uri in DeltaTable(str(table)).file_uris()}


def swap(table: Path, gone: Iterable[str], added: str | None) -> None:
    """Replace files of the table by one with the same rows, unless that was done before."""
    from deltalake import DeltaTable

    for _ in range(TRIES):
        version = DeltaTable(str(table)).version()
        there = active(table)
        actions = [_remove(name, added is None) for name in gone if name in there]
        if added is not None and added not in there:
            actions.append(_add(table, added))
        if not actions or _committed(table, version + 1, actions):
            return
    raise DeltaBusyError(f"{table} changes too often to commit to it; try again later")


def _committed(table: Path, version: int, actions: list[dict[str, Any]]) -> bool:
    """Write a commit, unless another writer has taken its number."""
    info = {"commitInfo": {"timestamp": _now_ms(), "operation": "OPTIMIZE"}}
    text = "".join(json.dumps(each) + "\n" for each in (info, *actions))
    draft = table / LOG / f".{version:020d}.retain.draft"
    draft.write_text(text, encoding="utf-8")
    try:
        # A link, unlike a rename, fails if the name exists.
        os.link(draft, table / LOG / f"{version:020d}.json")
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def _remove(name: str, is_change: bool) -> dict[str, Any]:
    return {"remove": {"path": name, "deletionTimestamp": _now_ms(), "dataChange": is_change}}


def _add(table: Path, name: str) -> dict[str, Any]:
    path = table / name
    stats = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": path.stat().st_mtime_ns // 1_000_000,
            "dataChange": False,
            "stats": stats,
        }
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
