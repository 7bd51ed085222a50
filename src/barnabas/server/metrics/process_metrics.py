"""Reads what the kernel knows of this process: processor time, memory, files, disk traffic."""

import os
import resource
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc/self")


class ProcessFacts(NamedTuple):
    """What the kernel counts; None where it does not say."""

    cpu_seconds: float
    resident_bytes: int | None
    open_files: int | None
    files_max: int
    read_bytes: int | None
    written_bytes: int | None


def process_facts() -> ProcessFacts:
    """Read the facts of this process."""
    times = os.times()
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    moved = _moved()
    return ProcessFacts(
        cpu_seconds=times.user + times.system,
        resident_bytes=_resident_bytes(),
        open_files=_open_files(),
        files_max=files_max,
        read_bytes=moved.get("read_bytes"),
        written_bytes=moved.get("write_bytes"),
    )


def _resident_bytes() -> int | None:
    try:
        pages = int((PROC / "statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> int | None:
    """Count open files; newer kernels say it as the size of a folder, older ones need a list."""
    try:
        folder = PROC / "fd"
        return folder.stat().st_size or len(list(folder.iterdir()))
    except OSError:
        return None


def _moved() -> dict[str, int]:
    """Return the bytes that disks read and wrote for this process."""
    try:
        lines = (PROC / "io").read_text().splitlines()
        return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    except (OSError, ValueError):
        return {}
