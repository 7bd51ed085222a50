"""The command line of the benchmarks: `python -m bench`, which `make bench` calls."""

import argparse
import signal
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType

from rich.console import Console

from bench.brokers import BROKERS
from bench.cluster_measure import ClusterPlan
from bench.cluster_measure import run as run_cluster
from bench.cluster_report import render_cluster, spliced
from bench.cluster_rows import CLUSTER_ROWS, EVERY_ROW
from bench.cluster_work import Pace
from bench.display import Display
from bench.machine import facts
from bench.measure import Plan, run
from bench.places import (
    CLUSTER_JSON,
    CLUSTER_PARTIAL_JSON,
    PARTIAL_JSON,
    RESULTS,
    RESULTS_JSON,
    ROOT,
    SECURITY_JSON,
    SECURITY_PARTIAL_JSON,
)
from bench.prepare import MissingError, prepare
from bench.report import BROKER_ROW, render
from bench.results import Results
from bench.rows import ROWS
from bench.secured import SECURED_BROKERS
from bench.security_report import render_security
from bench.security_rows import EVERY_SECURITY_ROW, SECURITY_ROWS

SECONDS, WARMUP = 3.0, 1.5
BOTH = "barnabas,kafka"
QUICK_SECONDS, QUICK_WARMUP = 1.2, 1.2
CLUSTER_ROUNDS, INCIDENTS = 2, 5


def main(words: list[str] | None = None) -> int:
    """Prepare, measure, write."""
    options = parser().parse_args(words)
    console = Console()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, stop)
    try:
        if options.render:
            render_again(console)
        else:
            measure_all(options, console)
    except MissingError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; the brokers are stopped too", style="yellow")
        return 130
    return 0


def saves(options: argparse.Namespace) -> bool:
    """Whether to replace part of RESULTS.md: after a whole run, or if an option asks for it."""
    is_whole = not (options.quick or options.only or options.brokers != BOTH)
    return is_whole if options.save is None else bool(options.save)


def saves_group(options: argparse.Namespace, every_row: str) -> bool:
    """The same for a group of rows that may be measured alone, under this name."""
    is_whole = not options.quick and options.brokers == BOTH
    is_whole &= not options.only or every_row in options.only
    return is_whole if options.save is None else bool(options.save)


def save(
    console: Console,
    single: str | None = None,
    security: str | None = None,
    cluster: str | None = None,
) -> None:
    """Write the page, with the parts that are new."""
    before = RESULTS.read_text() if RESULTS.exists() else ""
    RESULTS.write_text(spliced(before, single=single, security=security, cluster=cluster))
    console.print(f"written: {RESULTS.relative_to(ROOT)}")


def render_again(console: Console) -> None:
    """Write the page from the results of the last whole runs."""
    if RESULTS_JSON.exists():
        save(console, single=render(Results.load(RESULTS_JSON)))
    if SECURITY_JSON.exists():
        save(console, security=render_security(Results.load(SECURITY_JSON)))
    if CLUSTER_JSON.exists():
        save(console, cluster=render_cluster(Results.load(CLUSTER_JSON)))


def stop(_signal: int, _frame: FrameType | None) -> None:
    """Stop the brokers at the end, however the run ends."""
    raise KeyboardInterrupt


def measure_all(options: argparse.Namespace, console: Console) -> None:
    """Measure one broker, security, three; save after each sample, so that none is lost."""
    plan, cluster = plan_of(options), cluster_plan_of(options)
    security = security_plan_of(options)
    console.print("preparing: jars, librdkafka, load programs ...")
    prepare([broker.name for broker in plan.brokers])
    titles = {broker.name: broker.title for broker in plan.brokers}
    if plan.steps:
        measure(plan, Results(facts=facts() | shape(plan), titles=titles), console, saves(options))
    if security.steps:
        results = Results(facts=facts() | shape(security), titles=titles)
        is_saved = saves_group(options, EVERY_SECURITY_ROW)
        measure_security(security, results, console, is_saved)
    if cluster.steps:
        results = Results(facts=facts() | shape(cluster), titles=titles)
        measure_cluster(cluster, results, console, saves_group(options, EVERY_ROW))


def shape(plan: Plan | ClusterPlan) -> dict[str, str]:
    """The extent of the measurement, for the page."""
    pace = plan.pace if isinstance(plan, ClusterPlan) else plan
    return {"shape": f"{plan.rounds} rounds, {pace.seconds:g} s a row after {pace.warmup:g} s"}


def measure(plan: Plan, results: Results, console: Console, is_saved: bool) -> None:
    """The table of one broker."""
    collect(plan, results, console, RESULTS_JSON if is_saved else PARTIAL_JSON)
    if is_saved:
        save(console, single=render(results))
    else:
        show(console, render(results))


def measure_security(plan: Plan, results: Results, console: Console, is_saved: bool) -> None:
    """The tables about security."""
    collect(plan, results, console, SECURITY_JSON if is_saved else SECURITY_PARTIAL_JSON)
    if is_saved:
        save(console, security=render_security(results))
    else:
        show(console, render_security(results))


def collect(plan: Plan, results: Results, console: Console, path: Path) -> None:
    """Run the rows; add their samples to the results and to a file."""
    with Display(console, plan.steps) as display, closing(run(plan, display.begin)) as samples:
        for sample in samples:
            display.done(sample)
            results.samples.append(sample)
            results.save(path)


def show(console: Console, page: str) -> None:
    """Print a part of the page."""
    console.print(page, markup=False, highlight=False, soft_wrap=True)


def measure_cluster(plan: ClusterPlan, results: Results, console: Console, is_saved: bool) -> None:
    """The table of three brokers."""
    path = CLUSTER_JSON if is_saved else CLUSTER_PARTIAL_JSON
    with (
        Display(console, plan.steps) as display,
        closing(run_cluster(plan, display.begin, display.step)) as samples,
    ):
        for sample in samples:
            display.show(sample)
            results.samples.append(sample)
            results.save(path)
    if is_saved:
        save(console, cluster=render_cluster(results))
    else:
        show(console, render_cluster(results))


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
    wanted = wanted_rows(options)
    return Plan(
        rows=[row for row in ROWS if not wanted or row.key in wanted],
        brokers=[BROKERS[name] for name in wanted_brokers(options)],
        rounds=options.rounds or (1 if quick else 3),
        seconds=QUICK_SECONDS if quick else SECONDS,
        warmup=QUICK_WARMUP if quick else WARMUP,
        with_broker_row=not wanted or BROKER_ROW in wanted,
    )


def security_plan_of(options: argparse.Namespace) -> Plan:
    """The same for the rows about security."""
    quick: bool = options.quick
    wanted = wanted_rows(options)
    is_all = not wanted or EVERY_SECURITY_ROW in wanted
    brokers = [each for name in wanted_brokers(options) for each in SECURED_BROKERS[name]]
    rows = [row for row in SECURITY_ROWS if is_all or row.key in wanted]
    setups = {row.setup for row in rows}
    return Plan(
        rows=rows,
        brokers=[broker for broker in brokers if broker.setup in setups],
        rounds=options.rounds or (1 if quick else 3),
        seconds=QUICK_SECONDS if quick else SECONDS,
        warmup=QUICK_WARMUP if quick else WARMUP,
        with_broker_row=False,
    )


def cluster_plan_of(options: argparse.Namespace) -> ClusterPlan:
    """The same for three brokers."""
    quick: bool = options.quick
    wanted = wanted_rows(options)
    rows = [row for row in CLUSTER_ROWS if row.key in wanted]
    if not wanted or EVERY_ROW in wanted:
        rows = [row for row in CLUSTER_ROWS if not (quick and row.is_long)]
    return ClusterPlan(
        rows=rows,
        systems=wanted_brokers(options),
        rounds=options.rounds or (1 if quick else CLUSTER_ROUNDS),
        pace=Pace(
            seconds=QUICK_SECONDS if quick else SECONDS,
            warmup=QUICK_WARMUP if quick else WARMUP,
            incidents=1 if quick else INCIDENTS,
        ),
    )


def wanted_rows(options: argparse.Namespace) -> set[str]:
    """The rows asked for; none means all."""
    wanted = set(options.only or [])
    known = {row.key for row in ROWS} | {row.key for row in CLUSTER_ROWS}
    known |= {row.key for row in SECURITY_ROWS} | {BROKER_ROW, EVERY_ROW, EVERY_SECURITY_ROW}
    if unknown := wanted - known:
        sys.exit(f"no such row: {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return wanted


def wanted_brokers(options: argparse.Namespace) -> list[str]:
    """The names asked for."""
    names: list[str] = options.brokers.split(",")
    if unknown := set(names) - BROKERS.keys():
        sys.exit(f"no such broker: {', '.join(unknown)}; there are: {', '.join(BROKERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
