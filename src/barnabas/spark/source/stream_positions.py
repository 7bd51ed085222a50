"""The position of a stream: an offset for each partition, and the id of each topic.

Spark stores a position as JSON. Besides the topics it may have marks, under names that no topic can
have:

    @topicIds  the id of each topic (KIP-516), where the brokers have ids
    @initial   the query started at this position; nothing was read
    @start     the start of the batch that ends here; only on the end of the first batch
    @refused   why the query cannot start; only on an initial position

A topic that was deleted and created again has another id, so its offsets are distinguished from
those of its predecessor. Checkpoints of earlier versions have no ids; the first batch that is read
from them adds the ids.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.spark.source.offset_json import Nested, flat, nested

INITIAL, START, TOPIC_IDS, REFUSED = "@initial", "@start", "@topicIds", "@refused"


class Position(NamedTuple):
    """Offsets, and the known ids of their topics."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]

    def stored(self) -> Nested:
        """Return the text for a checkpoint; the same position gives the same text."""
        ids = {name: self.topic_ids[name] for name in sorted(self.topic_ids)}
        return {**({TOPIC_IDS: ids} if ids else {}), **nested(self.offsets)}

    def without(self, topics: Collection[str]) -> "Position":
        """Return the position in all other topics."""
        return Position(
            {place: offset for place, offset in self.offsets.items() if place.topic not in topics},
            {name: value for name, value in self.topic_ids.items() if name not in topics},
        )

    def with_missing(self, earlier: "Position") -> "Position":
        """Add the partitions that only an earlier position has."""
        missing = {
            place: offset for place, offset in earlier.offsets.items() if place not in self.offsets
        }
        topics = {place.topic for place in missing}
        ids = {name: value for name, value in earlier.topic_ids.items() if name in topics}
        return Position({**missing, **self.offsets}, {**ids, **self.topic_ids})

    def recreated_topics(self, later: Mapping[str, str]) -> set[str]:
        """Return the topics that have another id in a later position."""
        return {
            name for name, value in self.topic_ids.items() if name in later and later[name] != value
        }


def position(stored: Nested) -> Position:
    """Return the offsets and topic ids in a checkpoint, without other marks."""
    offsets = {name: value for name, value in stored.items() if not name.startswith("@")}
    return Position(flat(offsets), dict(stored.get(TOPIC_IDS, {})))
