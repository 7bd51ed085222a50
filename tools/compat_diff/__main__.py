"""The command line of compat_diff: starts both brokers, plays every dialogue, prints the report.

python -m tools.compat_diff                                  everything
python -m tools.compat_diff --only topics --random 0         one theme
python -m tools.compat_diff --random 11000 --seed 7          more by chance
python -m tools.compat_diff --barnabas 127.0.0.1:9092        against a broker that runs
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.compat_diff.brokers import (
    Address,
    MissingError,
    running_barnabas,
    running_kafka,
    warm_up,
)
from tools.compat_diff.dialogues import WRITTEN
from tools.compat_diff.drawing import DRAWN_STEPS, drawn
from tools.compat_diff.explained import TABLE
from tools.compat_diff.explaining import DOCUMENT, check_sentences
from tools.compat_diff.playing import Played, Player, scenes
from tools.compat_diff.report import print_report, write_json
from tools.compat_diff.steps import Dialogue

DRAWN_FROM = 10_000
"""Random dialogues are numbered from here, so that a seed always gives the same ones."""


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.compat_diff",
        description="Compare the answers of Barnabas with those of Apache Kafka.",
        epilog="example: python -m tools.compat_diff --only transactions --random 2000 --seed 7",
    )
    parser.add_argument("--seed", type=int, default=1, help="the seed of random dialogues (1)")
    parser.add_argument("--random", type=int, default=2000, help="random requests (2000)")
    parser.add_argument("--dialogues", type=int, help="at most this many hand-written dialogues")
    parser.add_argument("--only", default="", help="written dialogues whose name contains this")
    parser.add_argument("--json", type=Path, help="write all differences to this file")
    parser.add_argument("--barnabas", type=address, help="a running broker, as host:port")
    parser.add_argument("--kafka", type=address, help="a running Apache Kafka, as host:port")
    parser.add_argument("--workers", type=int, default=4, help="dialogues at the same time (4)")
    return parser.parse_args(arguments)


def address(text: str) -> Address:
    """Read host:port."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def written(options: argparse.Namespace) -> list[tuple[str, Dialogue]]:
    """Return the written dialogues to play, by their names."""
    chosen = [(name, talk) for name, talk in WRITTEN.items() if options.only in name]
    return chosen[: options.dialogues]


def compare_all(options: argparse.Namespace, console: Console) -> list[Played]:
    """Start the brokers that do not run yet, and run the dialogues."""
    with ExitStack() as running:
        console.print("Starting the brokers ...")
        barnabas = options.barnabas or running.enter_context(running_barnabas())
        kafka = options.kafka or running.enter_context(running_kafka())
        warm_up(kafka)
        warm_up(barnabas)
        player = Player(kafka, barnabas, TABLE)
        return play_all(player, options, console)


def play_all(player: Player, options: argparse.Namespace, console: Console) -> list[Played]:
    """Run dialogues, several at a time: first the written ones, then the random ones."""
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    run = int(time.time()) if options.kafka or options.barnabas else 0
    chosen = written(options)
    played: list[Played] = []
    with (
        Progress(*columns, console=console) as progress,
        ThreadPoolExecutor(options.workers) as pool,
    ):
        task = progress.add_task("written dialogues", total=len(chosen))
        futures = [
            pool.submit(player.play, name, talk, scene)
            for (name, talk), scene in zip(chosen, scenes(options.seed, run), strict=False)
        ]
        for future in as_completed(futures):
            played.append(future.result())
            progress.update(task, advance=1)
        task = progress.add_task("random requests", total=options.random)
        left = options.random
        by_chance = scenes(options.seed, run, DRAWN_FROM)
        while left > 0:
            dialogues = min(options.workers * 4, -(-left // DRAWN_STEPS))
            futures = [
                pool.submit(player.play, f"drawn-{scene.number}", drawn, scene, strict=True)
                for scene in islice(by_chance, dialogues)
            ]
            for future in futures:
                played.append(future.result())
                left -= played[-1].answers
                progress.update(task, completed=options.random - left)
    return sorted(played, key=lambda one: one.name)


def main(arguments: list[str]) -> int:
    """Compare; return 1 if a difference is not explained."""
    options = options_of(arguments)
    console = Console()
    stale = check_sentences(TABLE, DOCUMENT.read_text())
    for sentence in stale:
        console.print(f'docs/compatibility.md no longer says "{sentence}"', markup=False)
    if stale:
        return 2
    try:
        played = compare_all(options, console)
    except MissingError as missing:
        console.print(str(missing), markup=False)
        return 2
    unexplained = print_report(console, played)
    if options.json:
        write_json(options.json, played)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
