"""Tests offsets as JSON, in both directions."""

import json

from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.ids import TopicPartition
from barnabas.spark.source.offset_json import flat, nested
from barnabas.spark.source.stream_positions import Position, position

places = st.builds(
    TopicPartition, st.text("abc.-_", min_size=1, max_size=5), st.integers(0, 2**31 - 1)
)


@given(st.dictionaries(places, st.integers(0, 2**63 - 1)))
def test_offsets_survive_the_way_through_a_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert flat(nested(offsets)) == offsets


@given(st.dictionaries(places, st.integers(0, 9), min_size=1))
def test_the_same_offsets_are_the_same_text_in_any_order(
    offsets: dict[TopicPartition, int],
) -> None:
    backwards = dict(reversed(offsets.items()))
    assert str(nested(offsets)) == str(nested(backwards))


offsets_of_places = st.dictionaries(places, st.integers(0, 9))


@given(offsets_of_places, st.dictionaries(st.text("abc.-_", min_size=1), st.text("xyz")))
def test_positions_survive_the_way_through_a_checkpoint(
    offsets: dict[TopicPartition, int], ids: dict[str, str]
) -> None:
    kept = json.loads(json.dumps({"@initial": True, **Position(offsets, ids).stored()}))
    assert position(kept) == (offsets, ids)


@given(offsets_of_places, offsets_of_places)
def test_partitions_that_are_missing_keep_their_place(
    now: dict[TopicPartition, int], earlier: dict[TopicPartition, int]
) -> None:
    ids = {place.topic: "x" for place in earlier}
    found = Position(now, {}).with_missing(Position(earlier, ids))
    assert found.offsets == {**earlier, **now}
    assert found.topic_ids.keys() == {place.topic for place in earlier.keys() - now.keys()}
