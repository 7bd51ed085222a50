"""The CPU and memory of the exporter itself, as Prometheus clients name them."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.exporter.series_text import COUNTER, GAUGE, Family

STATM = Path("/proc/self/statm")
RESIDENT = 1
"""The second number of statm: resident pages."""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def process_families() -> Iterator[Family]:
    """Return the series."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Family(
        "process_cpu_seconds_total",
        COUNTER,
        "Processor time of the exporter.",
        lines=[((), used.ru_utime + used.ru_stime)],
    )
    yield Family(
        "process_resident_memory_bytes",
        GAUGE,
        "Memory of the exporter.",
        lines=[((), _resident_bytes(used.ru_maxrss * _PEAK_UNIT))],
    )


def _resident_bytes(peak: int) -> int:
    """Return the resident memory; the peak where the system does not tell."""
    try:
        return int(STATM.read_text().split()[RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak
