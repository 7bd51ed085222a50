"""Finds processes by their parents and command lines in /proc: JVMs, executors, Python workers."""

import os
from collections.abc import Iterator
from pathlib import Path

EXECUTOR = "CoarseGrainedExecutorBackend"
"""What the command line of an executor's JVM has."""
WORKER_MARKS = ("pyspark.daemon", "pyspark.worker", "pyspark/daemon", "pyspark/worker")


def descendants(pid: int) -> list[int]:
    """Return the processes below one."""
    children: dict[int, list[int]] = {}
    for child, above in _parents():
        children.setdefault(above, []).append(child)
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


def command_line(pid: int) -> str:
    """Return the words of a process, separated by null characters; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Return whether a process is there and has not ended."""
    return bool(command_line(pid))


def is_python_worker(pid: int) -> bool:
    """Return whether a process is one in which Spark runs Python."""
    return any(mark in command_line(pid) for mark in WORKER_MARKS)


def executors(application: str) -> list[int]:
    """Return the JVMs of the executors that an application has on this machine."""
    every = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in every if is_executor(pid) and application in command_line(pid)]


def own_executor() -> int:
    """Return the JVM of the executor that this Python worker belongs to."""
    pid = os.getppid()
    while not is_executor(pid):
        pid = _parent(pid)
    return pid


def is_executor(pid: int) -> bool:
    """Return whether a process is the JVM of an executor."""
    line = command_line(pid)
    return EXECUTOR in line and "java" in line.split("\0")[0]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), _parent(int(entry.name))
            except OSError:
                continue


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])
