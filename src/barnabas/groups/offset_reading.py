"""Reads committed offsets for OffsetFetch: some of a group's, or all of them."""

from collections.abc import Mapping

from barnabas.groups.offset_store import Committed, OffsetStore, Place
from barnabas.metadata.image import Image
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NO_EPOCH, NO_OFFSET, NO_TOPIC_ID
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NOTHING: Mapping[int, Committed] = {}


def read_some(
    store: OffsetStore,
    image: Image,
    asked: OffsetFetchRequestGroup,
    *,
    by_id: bool,
    require_stable: bool,
) -> list[OffsetFetchResponseTopics]:
    """Return the requested positions, in the order of the request."""
    answers = []
    for topic in asked.topics or ():
        name = _name_of(image, topic) if by_id else topic.name
        if name is None:
            parts = [unknown(p, ErrorCode.UNKNOWN_TOPIC_ID) for p in topic.partition_indexes]
        else:
            reader = _Reader(store, asked.group_id, name, topic.topic_id, stable=require_stable)
            parts = [reader.read(partition) for partition in topic.partition_indexes]
        answers.append(
            OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=parts)
        )
    return answers


def read_all(
    store: OffsetStore,
    image: Image,
    asked: OffsetFetchRequestGroup,
    *,
    by_id: bool,
    require_stable: bool,
) -> list[OffsetFetchResponseTopics]:
    """Return every committed position; in a response by id, only of topics that have one."""
    answers = []
    for name, partitions in store.of_group(asked.group_id).items():
        topic_id = NO_TOPIC_ID
        if by_id:
            found = image.topics.get(name)
            if found is None:
                continue  # the response could not name it
            topic_id = found.topic_id
        reader = _Reader(store, asked.group_id, name, NO_TOPIC_ID, stable=require_stable)
        parts = [reader.read(partition) for partition in partitions]
        answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=parts))
    return answers


def unknown(partition: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """Return the answer for an offset that is unknown, or not stable yet."""
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata="",
        error_code=code,
    )


class _Reader:
    """Reads the positions of one group in one topic."""

    def __init__(
        self, store: OffsetStore, group: str, topic: str, topic_id: bytes, *, stable: bool
    ) -> None:
        self._store = store
        self._group = group
        self._topic = topic
        self._topic_id = topic_id
        self._stable = stable
        self._committed = store.of_group(group).get(topic, NOTHING)

    def read(self, partition: int) -> OffsetFetchResponsePartitions:
        """Return one position."""
        if self._stable and self._store.is_waiting(Place(self._group, self._topic, partition)):
            return unknown(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self._committed.get(partition)
        if committed is None or self._is_of_another_topic(committed):
            return unknown(partition)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )

    def _is_of_another_topic(self, committed: Committed) -> bool:
        """Tell whether it was committed for an earlier topic of the same name."""
        known = NO_TOPIC_ID not in (committed.topic_id, self._topic_id)
        return known and committed.topic_id != self._topic_id


def _name_of(image: Image, topic: OffsetFetchRequestTopics) -> str | None:
    found = image.topic_by_id(topic.topic_id)
    return None if found is None else found.name
