"""Committed offsets: checks commits and fetches, and makes the records that store them.

A commit is checked twice: the group decides whether this member may commit now, and for each
partition it is checked whether it exists and whether the metadata is short enough. The response has
a code for each partition, as in Kafka.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from barnabas.groups.directory import Directory, GroupType
from barnabas.groups.offset_expiry import tombstones_due
from barnabas.groups.offset_reading import read_all, read_some
from barnabas.groups.offset_records import (
    OffsetRecord,
    OffsetWriter,
    committed_in,
    tombstone,
)
from barnabas.groups.offset_store import Committed, OffsetStore, Place, TopicAgain
from barnabas.groups.simple import SimpleGroup
from barnabas.metadata.image import Image, TopicImage
from barnabas.model.coordination import (
    Caller,
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.endings import Endings
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages import offset_commit, offset_delete, txn_offset_commit
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)

EXPIRE = "expire offsets"
EXPIRED_MAX = 1000
"""How many offsets expire in one event, so that others do not wait long."""
SOON_MS = 1

MEMBER_EPOCHS_FROM = 9
"""The version of OffsetCommit from which members of `consumer` groups may commit (KIP-848)."""
TOPIC_IDS_FROM = 10

INT64_MAX = (1 << 63) - 1
NONE = ErrorCode.NONE

_new = tuple.__new__


class AskedPartition(Protocol):
    """A partition in a request, of either kind."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class Terms(NamedTuple):
    """The facts that apply to every partition of a request."""

    group: str
    refusal: ErrorCode
    """The code with which the group refuses; NONE if it does not."""
    commit_ms: int
    expire_ms: int = -1


class Offsets:
    """The offsets of every group of one coordinator."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._groups = groups
        self._image = image
        self._store = OffsetStore()
        self.endings: Endings[int] = Endings()
        """The ends of transactions for which commits wait, by producer id."""

    def commit(
        self, request: offset_commit.OffsetCommitRequest, caller: Caller
    ) -> Outcome[offset_commit.OffsetCommitResponse]:
        """Store the committed offsets of a group."""
        terms = Terms(
            request.group_id,
            self._refusal(request, caller.version),
            caller.now_ms,
            _expire_ms(request.retention_time_ms, caller.now_ms),
        )
        absent = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if caller.version >= TOPIC_IDS_FROM
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        records: list[CoordinatorRecord] = []
        answers = []
        found_topics = self.topics_of(request, caller.version)
        for topic, found in zip(request.topics, found_topics, strict=True):
            if found is None:
                codes = [absent] * len(topic.partitions)
            else:
                codes = self._take(terms, found, found.topic_id, topic.partitions, records)
            parts = [
                offset_commit.OffsetCommitResponsePartition(
                    partition_index=part.partition_index, error_code=code
                )
                for part, code in zip(topic.partitions, codes, strict=True)
            ]
            answers.append(
                offset_commit.OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=parts
                )
            )
        if records and request.member_id:
            self._touch(request.group_id, request.member_id)
        return Outcome(offset_commit.OffsetCommitResponse(topics=answers), records)

    def topics_of(
        self, request: offset_commit.OffsetCommitRequest, version: int
    ) -> list[TopicImage | None]:
        """Return the topics of a commit, None for those that do not exist."""
        image = self._image()
        if version >= TOPIC_IDS_FROM:
            return [image.topic_by_id(topic.topic_id) for topic in request.topics]
        return [image.topics.get(topic.name) for topic in request.topics]

    def takes(
        self,
        request: offset_commit.OffsetCommitRequest,
        version: int,
        topics: Sequence[TopicImage],
    ) -> bool:
        """Tell whether a repeated commit is accepted; if so, it counts as a heartbeat."""
        known = self._image().topics
        for topic in topics:
            if known.get(topic.name) is not topic:
                return False
        if self._refusal(request, version) is not NONE:
            return False
        if request.member_id:
            self._touch(request.group_id, request.member_id)
        return True

    def refuses(self, request: offset_commit.OffsetCommitRequest, version: int) -> bool:
        """Tell whether the group refuses a commit. This does not count as a heartbeat."""
        return self._refusal(request, version) is not NONE

    def commit_in_transaction(
        self, request: txn_offset_commit.TxnOffsetCommitRequest, caller: Caller
    ) -> Outcome[txn_offset_commit.TxnOffsetCommitResponse]:
        """Store the offsets of a group that take effect once a transaction commits."""
        refusal = self._refusal_in_transaction(request)
        terms = Terms(request.group_id, refusal, caller.now_ms)
        image = self._image()
        records: list[CoordinatorRecord] = []
        answers = []
        for topic in request.topics:
            found = image.topics.get(topic.name)
            if found is None:
                codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(topic.partitions)
            else:
                codes = self._take(terms, found, NO_TOPIC_ID, topic.partitions, records)
            parts = [
                txn_offset_commit.TxnOffsetCommitResponsePartition(
                    partition_index=part.partition_index, error_code=code
                )
                for part, code in zip(topic.partitions, codes, strict=True)
            ]
            answers.append(
                txn_offset_commit.TxnOffsetCommitResponseTopic(name=topic.name, partitions=parts)
            )
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        response = txn_offset_commit.TxnOffsetCommitResponse(topics=answers)
        return Outcome(response, records, producer)

    def fetch(
        self, asked: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> Outcome[OffsetFetchResponseGroup]:
        """Return the committed offsets of a group; -1 if there is none."""
        group = self._groups.get(asked.group_id)
        if group is not None:
            group.check_fetch(asked.member_id, asked.member_epoch)
        by_id = version >= TOPIC_IDS_FROM
        read = read_all if asked.topics is None else read_some
        topics = read(self._store, self._image(), asked, by_id=by_id, require_stable=require_stable)
        return Outcome(OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics))

    def delete(
        self, request: offset_delete.OffsetDeleteRequest
    ) -> Outcome[offset_delete.OffsetDeleteResponse]:
        """Delete offsets of topics that no member of the group reads."""
        group = self._groups.get(request.group_id)
        if group is None or group.type is GroupType.SHARE:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        others = group.type is GroupType.CLASSIC and group.protocol_type != "consumer"
        if others and not group.is_empty:  # only the members know which topics they read
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        topics = self._image().topics
        records: list[CoordinatorRecord] = []
        answers = []
        for topic in request.topics:
            found = topics.get(topic.name)
            count = 0 if found is None else len(found.partitions)
            subscribed = group.subscribes_to(topic.name)
            answer = offset_delete.OffsetDeleteResponseTopic(name=topic.name)
            answers.append(answer)
            for part in topic.partitions:
                index = part.partition_index
                code = NONE
                if not 0 <= index < count:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif subscribed:
                    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                else:
                    records += self._end(Place(request.group_id, topic.name, index))
                answer.partitions.append(
                    offset_delete.OffsetDeleteResponsePartition(
                        partition_index=index, error_code=code
                    )
                )
        return Outcome(offset_delete.OffsetDeleteResponse(topics=answers), records)

    def tombstones_of(self, group_id: str) -> list[CoordinatorRecord]:
        """Return tombstones of all positions of a group, also of those in open transactions."""
        committed = self._store.of_group(group_id)
        places = dict.fromkeys(
            Place(group_id, topic, partition)
            for topic, partitions in committed.items()
            for partition in partitions
        )
        places.update(dict.fromkeys(self._store.waiting(group_id)))
        return [tombstone(place) for place in places]

    def forget_topics(self, names: Sequence[str]) -> list[CoordinatorRecord]:
        """Return the tombstones of all positions in deleted topics."""
        if not names:
            return []
        gone = frozenset(names)
        places = dict.fromkeys(place for place in self._store.places() if place.topic in gone)
        return [tombstone(place) for place in places]

    def replay_written(self, record: OffsetRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Replay a commit that was made just now."""
        self._replay(record.group, record.topic, record.partition, record.committed, producer)

    def replay_again(
        self, group: str, topics: Sequence[TopicAgain], offsets: Sequence[int], now_ms: int
    ) -> None:
        """Replay commits of one group that differ from earlier ones only in offset and time."""
        if group not in self._groups:
            self._groups[group] = SimpleGroup(group)
        order = self._store.next_order()
        unused = iter(offsets)
        for topic, places in topics:
            partitions = self._store.partitions(group, topic)
            for (partition, epoch, note, expire_ms, topic_id), offset in zip(
                places, unused, strict=False
            ):
                partitions[partition] = _new(
                    Committed, (offset, epoch, note, now_ms, expire_ms, topic_id, order)
                )

    def replay(self, stored: Stored, producer: ProducerIdAndEpoch | None) -> None:
        """Replay a committed offset, or one that waits for its transaction."""
        key, value = stored
        assert isinstance(key, OffsetCommitKey)
        if value is None:
            self._store.remove(Place(key.group, key.topic, key.partition))
            return
        assert isinstance(value, OffsetCommitValue)
        committed = committed_in(value, self._store.next_order())
        self._replay(key.group, key.topic, key.partition, committed, producer)

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """End a transaction."""
        self._store.end(producer.producer_id, committed=committed)

    def loaded(self) -> None:
        """Start to expire offsets."""
        self._scheduler.schedule(EXPIRE, self._settings.offsets_retention_check_ms, self._expire)

    def _replay(
        self,
        group: str,
        topic: str,
        partition: int,
        committed: Committed,
        producer: ProducerIdAndEpoch | None,
    ) -> None:
        if group not in self._groups:
            self._groups[group] = SimpleGroup(group)
        if producer is None:
            self._store.put(group, topic, partition, committed)
        else:
            self._store.wait(producer.producer_id, Place(group, topic, partition), committed)

    def _take(
        self,
        terms: Terms,
        topic: TopicImage,
        topic_id: bytes,
        partitions: Sequence[AskedPartition],
        records: list[CoordinatorRecord],
    ) -> list[ErrorCode]:
        """Add the records of one topic; return a code for each partition."""
        count = len(topic.partitions)
        limit = self._settings.offset_metadata_max_bytes
        next_order = self._store.next_order
        writer = OffsetWriter(terms.group, topic.name, topic_id, terms.commit_ms, terms.expire_ms)
        codes = []
        for asked in partitions:
            index = asked.partition_index
            note = asked.committed_metadata or ""
            code = terms.refusal
            if not 0 <= index < count:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif code is NONE and len(note) > limit:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            codes.append(code)
            if code is NONE:
                offset, leader_epoch = asked.committed_offset, asked.committed_leader_epoch
                records.append(writer.record(index, offset, leader_epoch, note, next_order()))
        return codes

    def _refusal(self, request: offset_commit.OffsetCommitRequest, version: int) -> ErrorCode:
        """Return the code with which the group refuses a commit."""
        epoch = request.generation_id_or_member_epoch
        modern = version >= MEMBER_EPOCHS_FROM
        group = self._groups.get(request.group_id)
        if group is None:
            if epoch < 0:
                return NONE  # a consumer that is not a member, or a tool
            return ErrorCode.GROUP_ID_NOT_FOUND if modern else ErrorCode.ILLEGAL_GENERATION
        refusal = NONE
        try:
            group.check_commit(
                request.member_id, request.group_instance_id, epoch, transactional=False
            )
        except ApiError as error:
            refusal = error.code
        if refusal not in {NONE, ErrorCode.STALE_MEMBER_EPOCH}:
            return refusal
        stale = refusal is not NONE
        of_member = group.type is GroupType.CONSUMER and epoch >= 0
        if not modern and (stale or of_member):
            return ErrorCode.UNSUPPORTED_VERSION
        late = stale and group.may_commit_late(
            request.member_id, epoch, self._named(request.topics)
        )
        return NONE if late else refusal

    def _refusal_in_transaction(
        self, request: txn_offset_commit.TxnOffsetCommitRequest
    ) -> ErrorCode:
        """Return the code with which the group refuses a commit in a transaction."""
        group = self._groups.get(request.group_id)
        if group is None:
            return NONE if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
        try:
            group.check_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                transactional=True,
            )
        except ApiError as error:
            if error.code is not ErrorCode.STALE_MEMBER_EPOCH:
                return error.code
            named = [
                TopicPartition(topic.name, partition.partition_index)
                for topic in request.topics
                for partition in topic.partitions
            ]
            if not group.may_commit_late(request.member_id, request.generation_id, named):
                return ErrorCode.ILLEGAL_GENERATION
        return NONE

    def _named(
        self, topics: Sequence[offset_commit.OffsetCommitRequestTopic]
    ) -> list[TopicPartition]:
        """Return the partitions of a request, which may name topics by id only."""
        names = self._image().names
        return [
            TopicPartition(
                topic.name or names.get(TopicId(topic.topic_id), ""), asked.partition_index
            )
            for topic in topics
            for asked in topic.partitions
        ]

    def _touch(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.touch(member_id)

    def _end(self, place: Place) -> list[CoordinatorRecord]:
        """Return the tombstone of a position, if there is one."""
        committed = self._store.of_group(place.group).get(place.topic, {})
        if place.partition in committed or self._store.is_waiting(place):
            return [tombstone(place)]
        return []

    def _expire(self) -> Outcome[None]:
        """Delete expired positions, a part at a time."""
        now_ms, retention_ms = self._scheduler.wall_ms, self._settings.offsets_retention_ms
        due = tombstones_due(self._groups, self._store, now_ms, retention_ms)
        records = list(islice(due, EXPIRED_MAX))
        more = len(records) == EXPIRED_MAX
        delay_ms = SOON_MS if more else self._settings.offsets_retention_check_ms
        self._scheduler.schedule(EXPIRE, delay_ms, self._expire)
        return Outcome(None, records)


def _expire_ms(retention_ms: int, now_ms: int) -> int:
    """Return when a commit expires, if the client set its retention time."""
    return -1 if retention_ms == -1 else min(now_ms + retention_ms, INT64_MAX)
