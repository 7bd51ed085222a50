"""Offsets as JSON, there and back."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.ids import TopicPartition
from barnabas.spark.offsets import flat, nested

places = st.builds(
    TopicPartition, st.text("abc.-_", min_size=1, max_size=5), st.integers(0, 2**31 - 1)
)


@given(st.dictionaries(places, st.integers(0, 2**63 - 1)))
def test_offsets_survive_the_way_through_a_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert flat(nested(offsets)) == offsets


@given(st.dictionaries(places, st.integers(0, 9), min_size=1))
def test_the_same_offsets_are_the_same_text_whatever_their_order(
    offsets: dict[TopicPartition, int],
) -> None:
    backwards = dict(reversed(offsets.items()))
    assert str(nested(offsets)) == str(nested(backwards))
