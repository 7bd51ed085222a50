"""Commits as records, and back.

Committing is what a coordinator is asked most often, so a record that is written remembers what
it says: replay does not read it again. The bytes are those of the generated codecs.
"""

from collections.abc import Callable
from struct import Struct
from typing import cast

from barnabas.groups.offset_store import Committed, Place
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.codec import encoder
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue

WITH_EXPIRY, USUAL, WITH_TOPIC_ID = 1, 3, 4
"""The versions that are written, as Kafka chooses them."""

_VERSION = Struct(">h")
_PARTITION = Struct(">i")

_new_record = tuple.__new__


class OffsetRecord(CoordinatorRecord):
    """A commit that still knows what it says."""

    group: str
    topic: str
    partition: int
    committed: Committed


class OffsetWriter:
    """Makes the records of commits to one topic of one group."""

    __slots__ = ("_encode", "_group", "_head", "_prefix", "_topic")

    def __init__(self, group: str, topic: str, version: int) -> None:
        self._group = group
        self._topic = topic
        key = encode(OffsetCommitKey(group=group, topic=topic), None).key
        self._prefix = key[: -_PARTITION.size]
        self._head = _VERSION.pack(version)
        # A commit has every attribute of the message, under the same name.
        self._encode = cast("Callable[[Committed], bytes]", encoder(OffsetCommitValue, version))

    def record(self, partition: int, committed: Committed) -> OffsetRecord:
        """Return the record of a commit."""
        key = self._prefix + _PARTITION.pack(partition)
        value = self._head + self._encode(committed)
        record = _new_record(OffsetRecord, (key, value))
        record.group = self._group
        record.topic = self._topic
        record.partition = partition
        record.committed = committed
        return record


def version_for(expire_timestamp: int, topic_id: bytes) -> int:
    """Return the version in which a commit is stored: the oldest that can hold it."""
    if expire_timestamp != -1:
        return WITH_EXPIRY
    return USUAL if topic_id == NO_TOPIC_ID else WITH_TOPIC_ID


def tombstone(place: Place) -> CoordinatorRecord:
    """Return the record that ends a position."""
    key = OffsetCommitKey(group=place.group, topic=place.topic, partition=place.partition)
    return encode(key, None)


def committed_in(value: OffsetCommitValue, order: int) -> Committed:
    """Return the commit that a stored value tells of."""
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        order,
    )
