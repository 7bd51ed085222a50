"""Measures precision and recall of the findings on fresh simulated fleets, at 1 s and at 30 s.

    python -m tests.support.pipelines.fleet_scores --seeds 5

Each fleet goes through the commands that a user types: `telemetry simulate` into the topic of a
new broker, `telemetry run --once`, `telemetry evaluate`. Without `--first` the seeds are drawn at
random and printed, so that no code was tuned to them. It exits with 1 if a score is outside the
bounds of docs/telemetry.md ("Sampling rates").
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.testing.process import BrokerSubprocess
from tests.support.pipelines.pipeline import drain, telemetry

GPUS = 128
MINUTES = {1: 20, 30: 60}
"""How long a fleet is watched, by the seconds between samples."""
FINE = ("starved", "launch_bound")
"""Findings that rare samples cannot show."""
PRECISION, RECALL, RECALL_CAPPED = 0.95, 0.75, 0.5
SEED_MAX = 10**9


class Fleet(NamedTuple):
    """A simulated fleet."""

    seed: int
    interval_s: int


def scores(fleet: Fleet, folder: Path, gpus: int = GPUS) -> list[dict[str, Any]]:
    """Run a fleet through the pipeline; return the scores of its findings."""
    labels, lake = folder / "truth.jsonl", folder / "lake"
    with BrokerSubprocess(folder / "data") as broker:
        _told(
            *("simulate", "--gpus", str(gpus), "--seed", str(fleet.seed), "--speed", "max"),
            *("--interval", f"{fleet.interval_s}s", "--duration", f"{MINUTES[fleet.interval_s]}m"),
            *("--labels", str(labels), "--bootstrap", broker.bootstrap),
        )
        drain(broker.bootstrap, lake)
    told = _told("evaluate", "--labels", str(labels), "--lake", str(lake), "--json")
    found: list[dict[str, Any]] = json.loads(told)
    return found


def _told(*arguments: str) -> str:
    done = subprocess.run(telemetry(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def problems(fleet: Fleet, found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the scores that are outside the bounds of the documentation."""
    wrong = []
    for score in found:
        name, precision, recall = score["finding"], score["precision"], score["recall"]
        is_coarse = fleet.interval_s > 1
        least = RECALL_CAPPED if is_coarse and name == "power_capped" else RECALL
        if precision is not None and precision < PRECISION:
            wrong.append(f"{name}: precision {precision:.3f}")
        if is_coarse and name in FINE:
            if score["right"] + score["wrong"]:
                wrong.append(f"{name}: reported, though samples are too rare to show it")
        elif recall is not None and recall < least:
            wrong.append(f"{name}: recall {recall:.3f}")
    return [f"seed {fleet.seed}, {fleet.interval_s} s: {each}" for each in wrong]


def rows(found: Mapping[Fleet, list[dict[str, Any]]]) -> list[str]:
    """Return a line for each finding and interval: what each seed has, in their order."""
    lines = [f"{'every':>6} {'finding':<18} precision; recall; episodes noticed"]
    for interval_s in MINUTES:
        of_rate = [scores for fleet, scores in found.items() if fleet.interval_s == interval_s]
        names = dict.fromkeys(score["finding"] for scores in of_rate for score in scores)
        for name in names:
            same = [score for scores in of_rate for score in scores if score["finding"] == name]
            shown = "; ".join(
                " ".join(_share(score[key]) for score in same) for key in ("precision", "recall")
            )
            noticed = sum(score["episodes_met"] for score in same)
            lines.append(
                f"{interval_s:>4} s {name:<18} {shown}; "
                f"{noticed}/{sum(score['episodes'] for score in same)}"
            )
    return lines


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main(arguments: list[str] | None = None) -> int:
    """Run all fleets; return 0 if every score is within its bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, help="the first seed; random seeds by default")
    given = parser.parse_args(arguments)
    seeds = (
        [random.SystemRandom().randrange(SEED_MAX) for _ in range(given.seeds)]
        if given.first is None
        else list(range(given.first, given.first + given.seeds))
    )
    sys.stdout.write(f"seeds {', '.join(map(str, seeds))}\n")
    found: dict[Fleet, list[dict[str, Any]]] = {}
    wrong: list[str] = []
    for fleet in (Fleet(seed, interval_s) for interval_s in MINUTES for seed in seeds):
        with tempfile.TemporaryDirectory(prefix="fleet-scores-") as name:
            found[fleet] = scores(fleet, Path(name))
        wrong += problems(fleet, found[fleet])
        sys.stderr.write(f"seed {fleet.seed}, every {fleet.interval_s} s\n")
    for line in [*rows(found), *(f"WRONG {each}" for each in wrong)]:
        sys.stdout.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
