"""Commits as records, and back.

Committing is what a coordinator is asked most often. So a record that is written remembers what it
says, and replay does not read it again; and what the partitions of a topic have in common is
encoded once. The bytes are those of the generated codecs.
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

WITH_EXPIRY, USUAL = 1, 4
"""The versions that Kafka writes: one that knows when it is over, else the newest."""

_VERSION = Struct(">h")
_PARTITION = Struct(">i")
_POSITION = Struct(">hqi")
"""How a value of the usual version begins: the version, the offset, the leader epoch."""

_new_record = tuple.__new__


class OffsetRecord(CoordinatorRecord):
    """A commit that still knows what it says."""

    group: str
    topic: str
    partition: int
    committed: Committed


class OffsetWriter:
    """Makes the records of commits to one topic of one group, all of the same time."""

    __slots__ = ("_commit_ms", "_expire_ms", "_group", "_prefix", "_tails", "_topic", "_topic_id")

    def __init__(
        self, group: str, topic: str, topic_id: bytes, commit_ms: int, expire_ms: int
    ) -> None:
        self._group = group
        self._topic = topic
        # The version that knows when it is over does not know the id.
        self._topic_id = topic_id if expire_ms == -1 else NO_TOPIC_ID
        self._commit_ms = commit_ms
        self._expire_ms = expire_ms
        key = encode(OffsetCommitKey(group=group, topic=topic), None).key
        self._prefix = key[: -_PARTITION.size]
        self._tails: dict[str, bytes] = {}

    def record(
        self, partition: int, offset: int, leader_epoch: int, note: str, order: int
    ) -> OffsetRecord:
        """Return the record of a commit."""
        expire_ms = self._expire_ms
        committed = Committed(
            offset, leader_epoch, note, self._commit_ms, expire_ms, self._topic_id, order
        )
        if expire_ms == -1:
            tail = self._tails.get(note)
            if tail is None:
                tail = self._tails[note] = _encoded(committed, USUAL)[_POSITION.size :]
            value = _POSITION.pack(USUAL, offset, leader_epoch) + tail
        else:
            value = _encoded(committed, WITH_EXPIRY)
        record = _new_record(OffsetRecord, (self._prefix + _PARTITION.pack(partition), value))
        record.group = self._group
        record.topic = self._topic
        record.partition = partition
        record.committed = committed
        return record


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


def _encoded(committed: Committed, version: int) -> bytes:
    # A commit has every attribute of the message, under the same name.
    encode_value = cast("Callable[[Committed], bytes]", encoder(OffsetCommitValue, version))
    return _VERSION.pack(version) + encode_value(committed)
