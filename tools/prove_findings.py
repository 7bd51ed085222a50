"""Runs the rules over recordings of `tools/record_gpu.py`, and prints the findings of each phase.

    python -m tools.prove_findings FOLDER...

The table has a row for each phase and a column for each finding: the number of windows of the phase
with the finding. Tune with the recordings of `record_gpu.py tune` only, and prove with those of
`proof`. The exit code is 1 if a phase misses a finding or has a wrong one. Needs Spark and Java.
"""

import argparse
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.pipelines.phase_findings import PhaseRow, phase_rows


def table(rows: list[PhaseRow]) -> str:
    """Return phases by findings as text."""
    names = list(dict.fromkeys(name for row in rows for name in (*row.expected, *row.found)))
    lines = [("PHASE", "BOUND", "WINDOWS", *names, "")]
    lines += [
        (
            row.phase,
            row.bound,
            str(row.windows),
            *(str(row.found[name]) if name in row.found else "." for name in names),
            "; ".join(row.problems) or "right",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def prove(spark: SparkSession, folders: list[Path]) -> int:
    """Print a table for each folder; return the exit code."""
    wrong = 0
    for folder in folders:
        rows = phase_rows(spark, folder)
        wrong += sum(bool(row.problems) for row in rows)
        sys.stdout.write(f"{folder}\n{table(rows)}")
    return 1 if wrong else 0


def main() -> None:
    """Prove the folders of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, nargs="+", help="the output of record_gpu.py")
    given = parser.parse_args()
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        code = prove(spark, given.folder)
    finally:
        spark.stop()
    raise SystemExit(code)


if __name__ == "__main__":
    main()
