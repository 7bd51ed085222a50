"""Runs nvidia-smi and reads its CSV output line by line.

Drivers support different fields, and refuse a query with an unknown one. The error names the field,
so the query is repeated without it.
"""

import re
import shutil
import subprocess
from collections.abc import Generator, Iterator, Sequence

FIELDS = (
    "timestamp", "index", "uuid", "name", "driver_version", "pci.bus_id",
    "utilization.gpu", "utilization.memory", "memory.total", "memory.used", "memory.free",
    "temperature.gpu", "temperature.memory", "power.draw.instant", "power.draw", "power.limit",
    "clocks.current.sm", "clocks.current.memory", "clocks.max.sm",
    "clocks_event_reasons.active", "clocks_throttle_reasons.active",
    "ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total",
    "remapped_rows.uncorrectable", "pcie.link.gen.current", "pcie.link.width.current",
)  # fmt: skip
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')


class SmiError(RuntimeError):
    """nvidia-smi cannot be run; the text says what to change."""


def live_lines(
    interval_ms: int, *, program: str = "nvidia-smi"
) -> Generator[tuple[int, str], None, None]:
    """Return numbered lines, the header first, until the process ends or the iterator is closed."""
    path = shutil.which(program)
    if path is None:
        raise SmiError(f"There is no {program} on the PATH; install NVIDIA's driver, or use --dcgm")
    fields = list(FIELDS)
    while True:
        got_any = False
        process = _start(path, fields, interval_ms)
        try:
            assert process.stdout is not None
            head = process.stdout.readline()
            unknown = UNKNOWN_FIELD.search(head)
            if unknown is None:
                for number, line in enumerate(_after(head, process), 1):
                    got_any = True
                    yield number, line
        finally:
            _stop(process)
        if unknown is None or unknown[1] not in fields:
            if process.returncode not in (0, None) and not got_any:
                raise SmiError(f"{program} failed: {head.strip() or process.returncode}")
            return
        fields.remove(unknown[1])


def _after(head: str, process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    if head.startswith("timestamp"):
        yield head
        yield from process.stdout


def _start(path: str, fields: Sequence[str], interval_ms: int) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - the program that was asked for, no shell
        [path, f"--query-gpu={','.join(fields)}", "--format=csv", f"-lms={interval_ms}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        bufsize=1,
    )


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
