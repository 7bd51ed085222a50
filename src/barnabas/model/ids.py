"""The nouns every layer shares, as distinct types so that mypy keeps them apart."""

from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
Epoch = NewType("Epoch", int)
Offset = NewType("Offset", int)
Millis = NewType("Millis", int)
ProducerId = NewType("ProducerId", int)

TopicId = NewType("TopicId", bytes)
"""Sixteen raw bytes; a topic that is made again gets another."""

NO_TOPIC_ID = TopicId(bytes(16))
NO_PRODUCER_ID = ProducerId(-1)
NO_OFFSET = Offset(-1)
NO_EPOCH = Epoch(-1)
NO_TIMESTAMP_MS = Millis(-1)

NO_GROUP = "barnabas-no-group"
"""The group id of a consumer that belongs to no group. librdkafka insists on a group id and looks
for the coordinator of every group; under this id a broker names none, and makes no topic for it."""


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
