"""Tests how two logs find the point where they diverge, one epoch at a time."""

from random import Random

import pytest

from barnabas.protocol.fetch import Diverging
from barnabas.replication.divergence import common_end, divergence, misplacement
from barnabas.storage.epochs import LeaderEpochs
from tests.support.disks.memory_disk import MemoryDisk

Entries = list[tuple[int, int]]


def epochs(entries: Entries) -> LeaderEpochs:
    found = LeaderEpochs(MemoryDisk(), "log")
    found.entries = list(entries)
    return found


def test_logs_that_agree_do_not_diverge() -> None:
    leader = epochs([(1, 0), (3, 90)])
    assert divergence(leader, 120, 3, 100) is None
    assert divergence(leader, 120, 1, 90) is None
    assert divergence(leader, 120, -1, 0) is None, "an empty log is a prefix of any log"


def test_an_epoch_that_ended_earlier_returns_its_end() -> None:
    assert divergence(epochs([(1, 0), (3, 90)]), 120, 1, 100) == Diverging(1, 90)


def test_an_epoch_that_the_leader_never_had_is_answered_with_the_one_before() -> None:
    assert divergence(epochs([(1, 0), (3, 90)]), 120, 2, 110) == Diverging(1, 90)


def test_an_epoch_later_than_all_the_leader_knows_is_answered_with_its_last() -> None:
    assert divergence(epochs([(1, 0), (3, 90)]), 120, 5, 130) == Diverging(3, 120)


def test_a_follower_cuts_where_the_shared_epoch_ends_on_either_side() -> None:
    follower = epochs([(1, 0), (2, 100)])
    assert common_end(follower, 110, Diverging(1, 90)) == 90
    assert common_end(follower, 110, Diverging(1, 105)) == 100
    assert common_end(follower, 110, Diverging(0, 40)) == 0


def test_an_epoch_that_changed_on_the_followers_disk_is_noticed_and_cut_off() -> None:
    leader, follower = epochs([(0, 0), (1, 90)]), epochs([(0, 0), (1, 28)])
    assert divergence(leader, 120, 1, 31) is None, "the leader has that epoch, and it ends later"
    told = misplacement(leader, 1, 31)
    assert told == Diverging(0, 90)
    assert common_end(follower, 31, told) == 28
    assert misplacement(leader, 0, 28) is None


@pytest.mark.parametrize(
    ("epoch", "offset"), [(1, 91), (1, 120), (0, 90), (0, 1), (-1, 0), (2, 95)]
)
def test_an_epoch_is_where_it_can_be(epoch: int, offset: int) -> None:
    assert misplacement(epochs([(0, 0), (1, 90), (3, 100)]), epoch, offset) is None


def test_nothing_is_known_of_where_the_first_epoch_began() -> None:
    assert misplacement(epochs([(4, 50)]), 4, 50) is None
    assert misplacement(epochs([]), 4, 50) is None


@pytest.mark.parametrize("seed", range(200))
def test_both_sides_meet_at_the_last_batch_they_share(seed: int) -> None:
    rng = Random(seed)
    shared = written(rng, [], rng.randint(0, 3), 0)
    leader = written(rng, shared, rng.randint(1, 3), 10)
    follower = written(rng, shared, rng.randint(0, 3), 10, exclude={e for e, _ in leader})
    at_leader, at_follower = history(leader), history(follower)
    for _ in range(20):
        last = at_follower.entries[-1][0] if at_follower.entries else -1
        told = divergence(at_leader, len(leader), last, len(follower))
        if told is None:
            break
        end = common_end(at_follower, len(follower), told)
        assert end < len(follower) or end == 0, "each response must make progress"
        del follower[end:]
        at_follower.truncate_end(end)
    assert follower == leader[: len(follower)]
    assert len(follower) >= len(shared)


def written(
    rng: Random,
    before: list[tuple[int, int]],
    count: int,
    above: int,
    exclude: set[int] | None = None,
) -> list[tuple[int, int]]:
    """Return a log as its batches' epochs, with a mark of the writer in each."""
    log = list(before)
    latest = log[-1][0] if log else 0
    for _ in range(count):
        latest += rng.randint(1, 3)
        while exclude and latest in exclude:
            latest += 1
        log += [(latest, rng.randrange(1 << 30) + above) for _ in range(rng.randint(1, 4))]
    return log


def history(log: list[tuple[int, int]]) -> LeaderEpochs:
    found = epochs([])
    for offset, (epoch, _) in enumerate(log):
        found.assign(epoch, offset)
    return found
