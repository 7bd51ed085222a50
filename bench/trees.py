"""Measures checkouts of Barnabas beside each other, with the rows of the benchmark.

    python -m bench.trees ../before --rounds 4                    # the rows below
    python -m bench.trees ../before ../long-before --only requests-16

The brokers of all trees get the same load from the same programs, one after the other, and take
turns at being first. So a change shows as a ratio of medians within one run. `ratio` is this tree /
the other one; a figure whose ranges overlap has not changed as far as this run can tell.
"""

import argparse
import compileall
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.brokers import Barnabas
from bench.display import Display
from bench.measure import Plan, run
from bench.metrics import METRICS, Better
from bench.places import ROOT
from bench.prepare import prepare
from bench.report import number, spread, table
from bench.results import Results, Sample
from bench.rows import ROWS

ROW_KEYS = (
    *("produce-100b", "produce-1k", "produce-1k-big", "consume-1k", "consume-1k-100p"),
    *("end-to-end-2000", "ack-latency", "ack-latency-flush", "requests-16", "requests-64"),
    *("commits-1", "commits-10", "txn-10"),
)
THIS = "this"


@dataclass(frozen=True)
class TreeBroker(Barnabas):
    """The broker of one checkout, on this interpreter."""

    name: str = THIS
    tree: Path = ROOT

    def command(self, data: Path, port: int) -> list[str | Path]:
        """`barnabas serve`, imported from the checkout."""
        program = ["env", f"PYTHONPATH={self.tree / 'src'}", sys.executable, "-m", "barnabas.cli"]
        return [*program, "serve", "--listen", f"127.0.0.1:{port}", "--data", data, "--json"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("others", type=Path, nargs="+", help="the other checkouts")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each row runs")
    parser.add_argument("--only", action="append", metavar="ROW", help="may be repeated")
    options = parser.parse_args()
    wanted = options.only or ROW_KEYS
    others = [TreeBroker(path.name, path.resolve()) for path in options.others]
    plan = Plan(
        rows=[row for row in ROWS if row.key in wanted],
        brokers=[TreeBroker(), *others],
        rounds=options.rounds,
        seconds=options.seconds,
        warmup=1.0,
        with_broker_row=not options.only,
    )
    console = Console()
    prepare([])
    for other in others:
        compileall.compile_dir(other.tree / "src", quiet=1)
    results = Results(facts={}, titles={each.name: each.name for each in plan.brokers})
    with Display(console, plan.steps) as display, closing(run(plan, display.begin)) as samples:
        for sample in samples:
            display.done(sample)
            results.samples.append(sample)
    for other in others:
        header = ("row", "figure", "this tree", other.name, "ratio", "ranges")
        page = table(header, lines(results, other.name))
        console.print(page, markup=False, highlight=False, soft_wrap=True)


def lines(results: Results, other: str) -> list[tuple[str, ...]]:
    """One line for each figure of each row."""
    keys = dict.fromkeys((each.row, key) for each in results.samples for key in each.figures)
    return [line for row, key in keys if (line := line_of(results, other, row, key)) is not None]


def line_of(results: Results, other: str, row: str, key: str) -> tuple[str, ...] | None:
    """Compare one figure; None if it is not one that pages show."""
    metric = METRICS.get(key)
    if metric is None:
        return None
    ours, theirs = (results.summary(row, name, metric) for name in (THIS, other))
    if ours is None or theirs is None or not theirs.median:
        reasons = [failed(results.samples, row, name) for name in (THIS, other)]
        return (row, metric.title, *reasons, "", "")
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    is_better = (ours.median > theirs.median) == (metric.better is Better.HIGHER)
    word = "overlap" if overlap else "better" if is_better else "worse"
    ratio = f"{number(ours.median / theirs.median)}x"
    return row, f"{metric.title} ({metric.unit})", spread(ours), spread(theirs), ratio, word


def failed(samples: list[Sample], row: str, broker: str) -> str:
    """Say why a row has no figure."""
    errors = [each.error for each in samples if (each.row, each.broker) == (row, broker)]
    return next((error for error in errors if error), "none")


if __name__ == "__main__":
    main()
