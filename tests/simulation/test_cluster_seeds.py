"""Seeds of whole clusters that must all pass, and the promise that a seed brings a run back.

python -m barnabas.sim --world cluster --seed 17 --trace      shows what happened in one
make sim SEEDS=10000                                          runs many, in both kinds of worlds
"""

import pytest

from barnabas.sim.cluster_run import run_cluster
from tests.support.other_process import printed_elsewhere

SEEDS = 12
MORE_SEEDS = 300
REPLAYED = 5


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_goes_wrong(seed: int) -> None:
    assert run_cluster(seed).problem is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_nothing_goes_wrong_in_more_worlds(seed: int) -> None:
    assert run_cluster(seed).problem is None


def test_a_seed_replays_a_run() -> None:
    first, second = run_cluster(REPLAYED), run_cluster(REPLAYED, keep_trace=True)
    assert first.digest == second.digest
    assert first.events == second.events
    assert second.trace


def test_another_process_sees_the_same() -> None:
    code = (
        f"from barnabas.sim.cluster_run import run_cluster; print(run_cluster({REPLAYED}).digest)"
    )
    assert printed_elsewhere(code) == {run_cluster(REPLAYED).digest}
