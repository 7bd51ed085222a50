"""Commits as records, and back.

A coordinator gets more commits than other requests. So a record that it writes keeps its decoded
form, which replay uses; and the bytes that the partitions of a topic share are encoded once. The
bytes are the same as those of the generated codecs.
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
"""The versions that Kafka writes: one with an expiry time, otherwise the newest."""

_VERSION = Struct(">h")
_PARTITION = Struct(">i")
_POSITION = Struct(">hqi")
"""The beginning of a value of the usual version: the version, the offset, the leader epoch."""

_new_record = tuple.__new__


class OffsetRecord(CoordinatorRecord):
    """The record of a commit, with its decoded form."""

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
        # The version with an expiry time does not have the topic's id.
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
    """Return the tombstone of a position."""
    key = OffsetCommitKey(group=place.group, topic=place.topic, partition=place.partition)
    return encode(key, None)


def committed_in(value: OffsetCommitValue, order: int) -> Committed:
    """Return the commit in a stored value."""
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
