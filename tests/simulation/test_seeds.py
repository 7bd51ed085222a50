"""Seeds of a single broker that must pass, and tests that a seed replays its run.

python -m barnabas.sim --seed 17 --trace      shows what happened in one run
make sim SEEDS=10000                          runs many
"""

import subprocess
import sys

import pytest

from barnabas.sim.run import run
from tests.support.other_process import printed_elsewhere

SEEDS = 100


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed_passes(seed: int) -> None:
    result = run(seed)
    assert result.problem is None


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_a_seed_replays_a_run(seed: int) -> None:
    first, second = run(seed), run(seed, keep_trace=True)
    assert first.digest == second.digest
    assert first.events == second.events
    assert second.trace


def test_different_seeds_differ() -> None:
    assert len({run(seed).digest for seed in range(4)}) == 4


def test_another_process_replays_the_same_run() -> None:
    code = "from barnabas.sim.run import run; print(run(3).digest)"
    assert printed_elsewhere(code) == {run(3).digest}


def test_the_command_shows_a_trace() -> None:
    command = [sys.executable, "-m", "barnabas.sim", "--world", "lone", "--seed", "2", "--trace"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "FindCoordinatorRequest" in shown
    assert "seed 2 (lone) passes" in shown
