"""The command: `python -m bench`, which `make bench` calls."""

import argparse
import signal
import sys
from types import FrameType

from rich.console import Console

from bench.brokers import BROKERS
from bench.display import Display
from bench.machine import facts
from bench.measure import Plan, run
from bench.places import RESULTS, RESULTS_JSON, ROOT
from bench.prepare import MissingError, prepare
from bench.report import BROKER_ROW, render
from bench.results import Results
from bench.rows import ROWS, Row

SECONDS, WARMUP = 4.0, 1.5
QUICK_SECONDS, QUICK_WARMUP = 1.2, 0.5


def main(words: list[str] | None = None) -> int:
    """Prepare, measure, write."""
    options = parser().parse_args(words)
    console = Console()
    signal.signal(signal.SIGTERM, end_like_ctrl_c)
    try:
        if not options.render:
            measure(plan_of(options), console, options.save)
        if options.render or options.save:
            RESULTS.write_text(render(Results.load(RESULTS_JSON)))
            console.print(f"written: {RESULTS.relative_to(ROOT)}")
    except MissingError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; the brokers are stopped too", style="yellow")
        return 130
    return 0


def end_like_ctrl_c(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM cleans up as Ctrl-C does."""
    raise KeyboardInterrupt


def measure(plan: Plan, console: Console, save: bool) -> None:
    """Run the plan; results are saved after each sample, so that a stop loses nothing."""
    console.print("preparing: jars, librdkafka, load programs ...")
    prepare([broker.name for broker in plan.brokers])
    results = Results(facts=facts(), titles={b.name: b.title for b in plan.brokers})
    with Display(console, plan.steps) as display:
        for sample in run(plan, display):
            results.samples.append(sample)
            results.save(RESULTS_JSON)
    if not save:
        console.print(render(results), markup=False, highlight=False, soft_wrap=True)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser("bench", description=__doc__)
    options.add_argument("--rounds", type=int, help="rounds (default 3; 1 with --quick)")
    options.add_argument("--quick", action="store_true", help="one short round, under 4 minutes")
    options.add_argument("--only", action="append", metavar="ROW", help="this row; may be repeated")
    options.add_argument("--brokers", default="barnabas,kafka", help="which (default: both)")
    options.add_argument("--groups", action="store_true", help="also rows with consumer groups")
    options.add_argument("--render", action="store_true", help="write RESULTS.md from the JSON")
    options.add_argument(
        "--no-save", dest="save", action="store_false", help="print, and leave RESULTS.md alone"
    )
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    """What the options ask for; unknown names end the program with the known ones."""
    quick: bool = options.quick
    rows = [row for row in ROWS if is_wanted(row, options.only, options.groups)]
    wanted = set(options.only or [])
    known = {row.key for row in ROWS} | {BROKER_ROW}
    if unknown := wanted - known:
        sys.exit(f"no such row: {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    names = options.brokers.split(",")
    if unknown := set(names) - BROKERS.keys():
        sys.exit(f"no such broker: {', '.join(unknown)}; there are: {', '.join(BROKERS)}")
    return Plan(
        rows=rows,
        brokers=[BROKERS[name] for name in names],
        rounds=options.rounds or (1 if quick else 3),
        seconds=QUICK_SECONDS if quick else SECONDS,
        warmup=QUICK_WARMUP if quick else WARMUP,
        with_broker_row=not wanted or BROKER_ROW in wanted,
    )


def is_wanted(row: Row, only: list[str] | None, groups: bool) -> bool:
    """Named rows, or all that the broker can serve."""
    return row.key in only if only else groups or not row.needs_groups


if __name__ == "__main__":
    sys.exit(main())
