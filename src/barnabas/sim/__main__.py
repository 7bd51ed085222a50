"""Runs seeds of the simulation: `python -m barnabas.sim --seed 1 --seeds 1000`.

`--trace` shows everything that happened. Each seed runs twice: in a world with a single broker, and
in a world with a cluster.
"""

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from barnabas.sim.cluster_run import run_cluster
from barnabas.sim.run import Result, run

SHOWN_EVERY_S = 5
LINE_CHARS = 300
WORLDS = {"lone": run, "cluster": run_cluster}

Played = tuple[str, Result]


def main() -> int:
    """Run the seeds; return 1 if any of them failed."""
    parser = argparse.ArgumentParser(prog="barnabas.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seeds", type=int, default=1, help="the number of seeds (1)")
    parser.add_argument("--world", choices=sorted(WORLDS), help="run one kind of world only")
    parser.add_argument("--trace", action="store_true", help="show everything that happened")
    parser.add_argument(
        "--jobs", type=int, default=1, help="the number of seeds that run at once (1)"
    )
    wanted = parser.parse_args()
    worlds = [wanted.world] if wanted.world else list(WORLDS)
    total = wanted.seeds * len(worlds)
    started_s = shown_s = time.monotonic()
    failed, events, simulated_ms = 0, 0, 0
    for done, (world, result) in enumerate(played(wanted, worlds), 1):
        failed += show(world, result, trace=wanted.trace)
        events, simulated_ms = events + result.events, simulated_ms + result.simulated_ms
        now_s = time.monotonic()
        if now_s - shown_s > SHOWN_EVERY_S or done == total:
            shown_s = now_s
            rate = done / (now_s - started_s)
            say(
                f"{done} of {total} worlds, {failed} failed, {events} events, "
                f"{simulated_ms // 1000} s simulated, {rate:.1f} worlds/s"
            )
    return min(failed, 1)


def played(wanted: argparse.Namespace, worlds: list[str]) -> Iterator[Played]:
    """Run every seed in every world."""
    chosen = product(range(wanted.seed, wanted.seed + wanted.seeds), worlds)
    one = partial(play, keep_trace=wanted.trace)
    if wanted.jobs == 1:
        yield from map(one, chosen)
        return
    with ProcessPoolExecutor(wanted.jobs) as pool:
        yield from pool.map(one, chosen, chunksize=8)


def play(chosen: tuple[int, str], *, keep_trace: bool) -> Played:
    """Run one seed in one world.

    The garbage collector runs once after each world. Collecting during a run would take a fifth of
    the time.
    """
    seed, world = chosen
    gc.disable()
    result = WORLDS[world](seed, keep_trace=keep_trace)
    gc.collect()
    return world, result


def show(world: str, result: Result, *, trace: bool) -> bool:
    """Print the trace and the problem of a run, if any; return whether there was a problem."""
    for line in result.trace:
        say(line[:LINE_CHARS])
    seed = f"seed {result.seed} ({world})"
    if result.problem is not None:
        say(f"{seed} fails at {result.simulated_ms} ms: {result.problem.strip()}")
        if not trace:
            how = f"--world {world} --seed {result.seed}"
            say(f"  show the trace: python -m barnabas.sim {how} --trace")
    elif trace:
        say(f"{seed} passes; digest {result.digest}")
    return result.problem is not None


def say(line: str) -> None:
    """Print a line and flush it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
