"""Compares the merging of state batches, and the coordinator's state, with a dict of offsets."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import DeliveryState, StateBatch, StateUpdate
from barnabas.share.state_batches import merged
from tests.support.talk.share_talk import KEY, ShareTalk

OFFSETS_MAX = 40
Plain = dict[int, tuple[DeliveryState, int]]

states = st.sampled_from(
    [DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED]
)


@st.composite
def batches(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, OFFSETS_MAX))
    last = draw(st.integers(first, OFFSETS_MAX))
    return StateBatch(first, last, draw(states), draw(st.integers(1, 2)))


def put(plain: Plain, newer: Sequence[StateBatch], start_offset: int) -> Plain:
    """Do to a dict what a merge does to runs."""
    after = dict(plain)
    for batch in newer:
        for offset in range(batch.first, batch.last + 1):
            after[offset] = (batch.state, batch.deliveries)
    return {offset: state for offset, state in after.items() if offset >= start_offset}


def spread(runs: Sequence[StateBatch]) -> Plain:
    return put({}, runs, 0)


def are_shortest(runs: Sequence[StateBatch]) -> bool:
    """Tell whether runs are sorted, apart, and joined where they can be."""
    for one, other in pairwise(runs):
        if one.last >= other.first:
            return False
        if one.last + 1 == other.first and one[2:] == other[2:]:
            return False
    return True


@given(st.lists(st.tuples(st.lists(batches(), max_size=4), st.integers(0, 20)), max_size=6))
def test_merged_runs_say_what_a_dict_says(
    changes: list[tuple[list[StateBatch], int]],
) -> None:
    runs: list[StateBatch] = []
    plain: Plain = {}
    start_offset = 0
    for newer, step in changes:
        start_offset += step
        runs = merged(runs, newer, start_offset)
        plain = put(plain, newer, start_offset)
        assert spread(runs) == plain
        assert are_shortest(runs)


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, int, list[StateBatch]]:
    what = draw(
        st.sampled_from(["write", "write", "write", "read", "initialize", "pass", "delete"])
    )
    return what, draw(st.integers(0, 3)), draw(st.lists(batches(), max_size=2))


@given(st.lists(steps(), max_size=40))
def test_a_coordinator_says_what_a_dict_says_and_its_successor_too(
    script: list[tuple[str, int, list[StateBatch]]],
) -> None:
    talk = ShareTalk(ShareSettings(updates_per_snapshot=3))
    expected: tuple[int, Plain] | None = None
    for what, number, newer in script:
        if what == "initialize":
            talk.initialize(number, state_epoch=-1)
            expected = number, {}
        elif what == "delete":
            talk.delete()
            expected = None
        elif what == "read":
            talk.read(number)
        elif what == "pass":
            talk.runner.pass_time(talk.settings.tidy_interval_ms)
        elif expected is not None:
            start_offset = expected[0] + number
            apart = merged([], newer, 0)
            change = StateUpdate(-1, -1, start_offset, number, apart)
            talk.runner.run(lambda machine, change=change: machine.write({KEY: change}))  # type: ignore[misc]
            plain = expected[1]
            newer_parts = [
                part
                for batch in apart
                for offset in range(batch.first, batch.last + 1)
                if (part := batch._replace(first=offset, last=offset)).deliveries
                >= plain.get(offset, part[2:])[1]
            ]
            expected = start_offset, put(plain, newer_parts, start_offset)
        successor = ShareTalk()
        for record in talk.runner.records[talk.log.deleted_before :]:
            successor.machine.replay(record, None)
        for each in (talk, successor):
            assert plain_state(each) == expected


def plain_state(talk: ShareTalk) -> tuple[int, Plain] | None:
    state = talk.machine.state_of(KEY)
    return None if state is None else (state.start_offset, spread(state.batches))
