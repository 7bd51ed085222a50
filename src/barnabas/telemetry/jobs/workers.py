"""Finds Python packages that workers on other machines lack, before the first job.

This module does not import packages that may be missing there.
"""

import importlib.util
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.telemetry.jobs.packing import REQUIREMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBES_A_CORE = 2
"""The number of tasks: Spark chooses their workers, and more tasks reach more workers."""


class Answer(NamedTuple):
    """The report of one worker."""

    hostname: str
    python: str
    missing: tuple[str, ...]
    sees_lake: bool


def lacks(spark: "SparkSession", lake: str | None) -> list[str]:
    """Return the problems of the workers, a sentence for each; empty if there are none."""
    context = spark.sparkContext
    count = max(2, PROBES_A_CORE * context.defaultParallelism)
    if lake is None or "://" in lake:
        answers = context.parallelize(range(count), count).mapPartitions(_Probe(None)).collect()
        return sentences(answers, lake)
    Path(lake).mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=lake, prefix=".seen-by-workers-") as mark:
        probe = _Probe(mark.name)
        answers = context.parallelize(range(count), count).mapPartitions(probe).collect()
    return sentences(answers, lake)


def sentences(answers: Iterable[Answer], lake: str | None) -> list[str]:
    """Return the workers' reports as sentences, once for each machine."""
    found = []
    for each in sorted(set(answers)):
        if each.missing:
            names = " ".join(repr(REQUIREMENTS[name]) for name in each.missing)
            found.append(
                f"{each.python} on worker {each.hostname} lacks {', '.join(each.missing)}; type "
                f"there: {each.python} -m pip install {names}, or name another Python with "
                "--conf spark.pyspark.python=PATH."
            )
        if not each.sees_lake:
            found.append(
                f"Worker {each.hostname} does not see {lake}; put it on a mount that all "
                "machines share. A lake may be a URI such as s3://bucket/lake."
            )
    return found


class _Probe:
    """Checks one worker."""

    def __init__(self, mark: str | None) -> None:
        self._mark = mark

    def __call__(self, _: Iterable[int]) -> Iterator[Answer]:
        missing = tuple(n for n in REQUIREMENTS if importlib.util.find_spec(n) is None)
        seen = self._mark is None or Path(self._mark).exists()
        yield Answer(socket.gethostname(), sys.executable, missing, seen)
