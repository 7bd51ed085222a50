"""Runs child processes that are always cleaned up, and reads their figures from /proc.

Each child leads its own process group, so that stopping it also stops its children. Ctrl-C reaches
only this program, which then stops its children in order. `setpriv` makes the kernel kill a child
whose parent died unexpectedly.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STAT_GROUP, STAT_USER_TICKS, STAT_SYSTEM_TICKS = 2, 11, 12
"""Fields of /proc/PID/stat, counted from the one after the command's name."""


class LoadError(Exception):
    """A measurement that failed; its text is the reason shown in the results."""


def dying_with_parent(command: Sequence[str | Path]) -> list[str]:
    """The command, wrapped so that no orphan outlives this program."""
    wrapper = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    return [*wrapper, *(str(word) for word in command)]


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The usage of a process group: CPU seconds so far, memory now and its maximum."""

    cpu_s: float
    resident_mb: float
    resident_max_mb: float


class Process:
    """A child that leads its own process group; its output goes to a log file."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                dying_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._child.poll() is None

    def ask_to_stop(self) -> None:
        """Ask the child to end, without waiting."""
        if self.alive:
            self._child.terminate()

    def stop(self, patience_s: float = 20.0) -> None:
        """Ask the child to end, then kill it."""
        if self.alive:
            self.ask_to_stop()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(patience_s)
        self.kill()

    def kill(self) -> None:
        """Kill the child and all its children."""
        kill_group(self._child.pid)
        self._child.wait()

    def usage(self) -> Usage:
        """The usage of the whole group so far."""
        members = list(group_members(self._child.pid))
        return Usage(
            cpu_s=sum(cpu_seconds(pid) for pid in members),
            resident_mb=sum(status_mb(pid, "VmRSS") for pid in members),
            resident_max_mb=sum(status_mb(pid, "VmHWM") for pid in members),
        )

    def last_words(self) -> str:
        """The last line it logged, for an error message."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it logged nothing"


def kill_group(leader: int) -> None:
    """Kill what is left of a child's group, if anything is."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, or none when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def group_members(leader: int) -> Iterator[int]:
    """The processes of one group."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = stat_fields(int(entry.name))
            if fields and int(fields[STAT_GROUP]) == leader:
                yield int(entry.name)


def cpu_seconds(pid: int) -> float:
    """User and system time of one process, all its threads."""
    fields = stat_fields(pid)
    if not fields:
        return 0.0
    return (int(fields[STAT_USER_TICKS]) + int(fields[STAT_SYSTEM_TICKS])) / TICKS_PER_SECOND


def status_mb(pid: int, name: str) -> float:
    """One memory figure of /proc/PID/status, in MB."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return parse_status_mb(text, name)


def parse_status_mb(text: str, name: str) -> float:
    """`VmRSS:  1234 kB` -> 1.26; 0 when the figure is not there, as for a zombie."""
    for line in text.splitlines():
        label, _, value = line.partition(":")
        if label == name:
            return int(value.split()[0]) * 1024 / 1e6
    return 0.0


def output_of(command: Sequence[str | Path], timeout_s: float) -> str:
    """Run a load to its end and return its stdout; an error has its last line of stderr."""
    with subprocess.Popen(
        dying_with_parent(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            output, errors = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise LoadError(f"not finished after {timeout_s:.0f} s") from error
        finally:
            kill_group(child.pid)
    if child.returncode:
        raise LoadError(last_line(errors) or last_line(output) or f"exit {child.returncode}")
    return output


def last_line(text: str) -> str:
    """The last line that is not empty, cut to a length that fits a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def wait_until(
    what: str, is_true: Callable[[], bool], timeout_s: float, every_s: float = 0.05
) -> None:
    """Poll until a condition holds."""
    give_up = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > give_up:
            raise LoadError(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(every_s)


def lines_until(
    command: Sequence[str | Path], is_enough: Callable[[list[str]], bool], timeout_s: float
) -> list[str]:
    """Run a load that reports continuously; end it once it has printed enough."""
    lines: list[str] = []
    with subprocess.Popen(
        dying_with_parent(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as child:
        watchdog = threading.Timer(timeout_s, kill_group, [child.pid])
        watchdog.start()
        try:
            assert child.stdout
            for line in child.stdout:
                lines.append(line.rstrip())
                if is_enough(lines):
                    return lines
        finally:
            watchdog.cancel()
            kill_group(child.pid)
    last = last_line("\n".join(lines))
    raise LoadError(f"ended before it had reported enough: {last}")
