"""Seeds of whole clusters that must pass, and tests that a seed replays its run.

python -m barnabas.sim --world cluster --seed 17 --trace      shows what happened in one run
make sim SEEDS=10000                                          runs many, in both kinds of worlds
"""

import pytest

from barnabas.sim.cluster_run import run_cluster
from tests.support.other_process import printed_elsewhere

SEEDS = 12
MORE_SEEDS = 300
REPLAYED = 5


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed_passes(seed: int) -> None:
    assert run_cluster(seed).problem is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_more_seeds_pass(seed: int) -> None:
    assert run_cluster(seed).problem is None


def test_a_seed_replays_a_run() -> None:
    first, second = run_cluster(REPLAYED), run_cluster(REPLAYED, keep_trace=True)
    assert first.digest == second.digest
    assert first.events == second.events
    assert second.trace


def test_another_process_replays_the_same_run() -> None:
    code = (
        f"from barnabas.sim.cluster_run import run_cluster; print(run_cluster({REPLAYED}).digest)"
    )
    assert printed_elsewhere(code) == {run_cluster(REPLAYED).digest}
