"""Run seeds: `python -m barnabas.sim --seed 1 --seeds 1000`, and one with its trace: `--trace`."""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from barnabas.sim.run import Result, run

SHOWN_EVERY_S = 5
LINE_CHARS = 300


def main() -> int:
    """Play seeds; return 1 where any of them found something."""
    parser = argparse.ArgumentParser(prog="barnabas.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seeds", type=int, default=1, help="how many (1)")
    parser.add_argument("--trace", action="store_true", help="show everything that happened")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (1)")
    wanted = parser.parse_args()
    started_s = shown_s = time.monotonic()
    failed, events, simulated_ms = 0, 0, 0
    with ProcessPoolExecutor(wanted.jobs) as pool:
        seeds = range(wanted.seed, wanted.seed + wanted.seeds)
        play = partial(run, keep_trace=wanted.trace)
        results = pool.map(play, seeds, chunksize=8) if wanted.jobs > 1 else map(play, seeds)
        for done, result in enumerate(results, 1):
            failed += show(result, trace=wanted.trace)
            events, simulated_ms = events + result.events, simulated_ms + result.simulated_ms
            now_s = time.monotonic()
            if now_s - shown_s > SHOWN_EVERY_S or done == wanted.seeds:
                shown_s = now_s
                rate = done / (now_s - started_s)
                say(
                    f"{done} of {wanted.seeds} seeds, {failed} failed, {events} events, "
                    f"{simulated_ms // 1000} s simulated, {rate:.1f} seeds/s"
                )
    return min(failed, 1)


def show(result: Result, *, trace: bool) -> bool:
    """Print a trace that was asked for, and what went wrong; return whether anything did."""
    for line in result.trace:
        say(line[:LINE_CHARS])
    if result.problem is not None:
        say(f"seed {result.seed} fails at {result.simulated_ms} ms: {result.problem.strip()}")
        if not trace:
            say(f"  to see how: python -m barnabas.sim --seed {result.seed} --trace")
    elif trace:
        say(f"seed {result.seed} is fine; digest {result.digest}")
    return result.problem is not None


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
