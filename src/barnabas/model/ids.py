"""Identifiers that every layer uses, as distinct types so that mypy tells them apart.

Offsets, epochs, times and producer ids are plain integers whose names say what they are.
"""

from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
TopicId = NewType("TopicId", bytes)
"""Sixteen raw bytes. A topic that is deleted and created again gets another id."""

NO_TOPIC_ID = TopicId(bytes(16))
NO_PRODUCER_ID = -1
NO_OFFSET = -1
NO_EPOCH = -1
NO_TIMESTAMP_MS = -1

NO_GROUP = "barnabas-no-group"
"""The group id of a consumer without a group. librdkafka requires a group id and looks up the
coordinator of every group. For this id a broker returns none, and does not create the topic of
offsets for it."""


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
