"""The command: `python -m bench`, which `make bench` calls."""

import argparse
import signal
import sys
from contextlib import closing
from types import FrameType

from rich.console import Console

from bench.brokers import BROKERS
from bench.display import Display
from bench.machine import facts
from bench.measure import Plan, run
from bench.places import PARTIAL_JSON, RESULTS, RESULTS_JSON, ROOT
from bench.prepare import MissingError, prepare
from bench.report import BROKER_ROW, render
from bench.results import Results
from bench.rows import ROWS

SECONDS, WARMUP = 3.0, 1.5
BOTH = "barnabas,kafka"
QUICK_SECONDS, QUICK_WARMUP = 1.2, 1.2


def main(words: list[str] | None = None) -> int:
    """Prepare, measure, write."""
    options = parser().parse_args(words)
    console = Console()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, stop)
    try:
        if options.render:
            save(Results.load(RESULTS_JSON), console)
        else:
            measure(plan_of(options), console, saves(options))
    except MissingError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; the brokers are stopped too", style="yellow")
        return 130
    return 0


def saves(options: argparse.Namespace) -> bool:
    """Only a whole run replaces RESULTS.md, unless it is told to."""
    is_whole = not (options.quick or options.only or options.brokers != BOTH)
    return is_whole if options.save is None else bool(options.save)


def save(results: Results, console: Console) -> None:
    """Write the page."""
    RESULTS.write_text(render(results))
    console.print(f"written: {RESULTS.relative_to(ROOT)}")


def stop(_signal: int, _frame: FrameType | None) -> None:
    """Whoever ends the run, the brokers are stopped on the way out."""
    raise KeyboardInterrupt


def measure(plan: Plan, console: Console, is_saved: bool) -> None:
    """Run the plan; results are kept after each sample, so that a stop loses nothing."""
    console.print("preparing: jars, librdkafka, load programs ...")
    prepare([broker.name for broker in plan.brokers])
    shape = {"shape": f"{plan.rounds} rounds, {plan.seconds:g} s a row after {plan.warmup:g} s"}
    results = Results(facts=facts() | shape, titles={b.name: b.title for b in plan.brokers})
    with Display(console, plan.steps) as display, closing(run(plan, display.begin)) as samples:
        for sample in samples:
            display.done(sample)
            results.samples.append(sample)
            results.save(RESULTS_JSON if is_saved else PARTIAL_JSON)
    if is_saved:
        save(results, console)
    else:
        console.print(render(results), markup=False, highlight=False, soft_wrap=True)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser("bench", description=__doc__)
    options.add_argument("--rounds", type=int, help="rounds (default 3; 1 with --quick)")
    options.add_argument("--quick", action="store_true", help="one short round, under 10 minutes")
    options.add_argument("--only", action="append", metavar="ROW", help="this row; may be repeated")
    options.add_argument("--brokers", default=BOTH, help=f"which (default: {BOTH})")
    options.add_argument("--render", action="store_true", help="write RESULTS.md from the JSON")
    options.add_argument(
        "--save",
        action=argparse.BooleanOptionalAction,
        help="write RESULTS.md (default: for a whole run) or only print",
    )
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    """What the options ask for; unknown names end the program with the known ones."""
    quick: bool = options.quick
    wanted = set(options.only or [])
    rows = [row for row in ROWS if not wanted or row.key in wanted]
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


if __name__ == "__main__":
    sys.exit(main())
