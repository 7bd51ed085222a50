"""Dialogues about topics: created, extended, described, truncated, deleted, with valid and invalid
requests.
"""

from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import (
    create,
    each_version,
    fetch,
    list_offsets,
    metadata,
    topic,
    with_topic,
)
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

BAD_NAMES = ("", ".", "..", "a b", "ä", "x" * 250, "a/b", "tab\t", "a:b")


def creating(scene: Scene, version: int) -> Talk:
    """Create topics correctly, twice, several at once, and with validate_only."""
    a, b, c = scene.name("a"), scene.name("b"), scene.name("c")
    yield create(topic(a, 2), version=version)
    yield create(topic(a, 2), version=version)
    yield create(topic(b), topic(b), version=version)
    yield create(topic(b), topic(a), topic("a b"), version=version)
    yield create(topic(c), version=version, validate_only=True)
    yield create(topic(a), version=version, validate_only=True)
    yield create(topic(c, -1, -1), version=version)
    yield create(version=version)
    yield metadata(a, b, c)


def creating_wrong_counts(scene: Scene, version: int) -> Talk:
    """Request impossible numbers of partitions and replicas."""
    counts = ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 99), (0, 0), (-1, 1), (1, -1))
    for number, (partitions, replicas) in enumerate(counts):
        yield create(topic(scene.name(f"n{number}"), partitions, replicas), version=version)


def creating_bad_names(scene: Scene) -> Talk:
    """Request names that are not allowed, and two that collide."""
    for name in BAD_NAMES:
        yield create(topic(name))
        yield metadata(name, create_them=False)
    yield create(topic(scene.name("x.y")))
    yield create(topic(scene.name("x_y")))
    yield create(topic("__consumer_offsets"))
    yield create(topic("__transaction_state"))
    yield create(topic("__cluster_metadata"))


def assigning(scene: Scene) -> Talk:
    """Place replicas manually, correctly and incorrectly."""
    tries: list[tuple[int, int, dict[int, list[int]]]] = [
        (-1, -1, {0: [1], 1: [1]}),
        (2, -1, {0: [1]}),
        (-1, 1, {0: [1]}),
        (-1, -1, {1: [1]}),
        (-1, -1, {0: [1], 2: [1]}),
        (-1, -1, {0: [7]}),
        (-1, -1, {0: [-1]}),
        (-1, -1, {0: [1, 1]}),
        (-1, -1, {0: []}),
        (-1, -1, {-1: [1]}),
        (-1, -1, {0: [1], 1: []}),
        (-1, -1, {0: [1], 1: [1, 2]}),
    ]
    for number, (partitions, replicas, assigned) in enumerate(tries):
        name = scene.name(f"t{number}")
        yield create(topic(name, partitions, replicas, assigned=assigned))
        yield create(topic(name, partitions, replicas, assigned=assigned), validate_only=True)


def creating_with_configs(scene: Scene) -> Talk:
    """Set configs of a new topic, known and unknown, valid and invalid."""
    tries: list[list[tuple[str, str | None]]] = [
        [("retention.ms", "1000")],
        [("retention.ms", "-1"), ("cleanup.policy", "compact,delete")],
        [("retention.ms", "soon")],
        [("retention.ms", None)],
        [("retention.ms", "")],
        [("no.such.config", "1")],
        [("cleanup.policy", "shred")],
        [("cleanup.policy", "")],
        [("cleanup.policy", " compact , delete ")],
        [("retention.ms", "1"), ("retention.ms", "2")],
        [("min.insync.replicas", "0")],
        [("min.insync.replicas", "3")],
        [("compression.type", "zstd"), ("compression.zstd.level", "3")],
        [("compression.type", "brotli")],
        [("max.message.bytes", "-1")],
        [("message.timestamp.type", "LogAppendTime")],
        [("message.timestamp.type", "Never")],
        [("segment.bytes", "13")],
        [("segment.bytes", "2000000")],
        [("preallocate", "yes")],
        [("preallocate", "TRUE")],
        [("unclean.leader.election.enable", "true")],
        [("min.cleanable.dirty.ratio", "1.5")],
        [("min.cleanable.dirty.ratio", "0.1")],
        [("retention.ms", " 5000 ")],
        [("retention.ms", "5e3")],
        [("message.format.version", "3.0")],
        [("remote.storage.enable", "true")],
        [("remote.storage.enable", "false")],
        [("local.retention.ms", "1000")],
        [("leader.replication.throttled.replicas", "*")],
        [("leader.replication.throttled.replicas", "0:1,1:1")],
        [("leader.replication.throttled.replicas", "x")],
        [("flush.messages", "0")],
        [("flush.ms", "-5")],
        [("max.compaction.lag.ms", "1"), ("min.compaction.lag.ms", "2")],
        [("internal.segment.bytes", "100000")],
        [("", "1")],
        [("errors.deadletterqueue.topic.name", "x")],
    ]
    for number, config in enumerate(tries):
        yield create(topic(scene.name(f"t{number}"), config=config))


def deleting(scene: Scene, version: int) -> Talk:
    """Delete topics by name and, from version 6 on, by id."""
    a, b = scene.name("a"), scene.name("b")
    answer = yield create(topic(a), topic(b), topic(scene.name("c")))
    topic_id = answer.first("topic_id", bytes(16))

    def delete(*names: str) -> Ask:
        if version < 6:
            return Ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=5000), version)
        named = [DeleteTopicState(name=name) for name in names]
        return Ask(DeleteTopicsRequest(topics=named, timeout_ms=5000), version)

    yield delete()
    yield delete(scene.name("unknown"))
    yield delete("")
    yield delete(b, b)
    yield delete(b, scene.name("unknown"))
    if version >= 6:
        for states in (
            [DeleteTopicState(name=None, topic_id=topic_id)],
            [DeleteTopicState(name=None, topic_id=topic_id)],
            [DeleteTopicState(name=None, topic_id=UNKNOWN_ID)],
            [DeleteTopicState(name=None, topic_id=bytes(16))],
            [DeleteTopicState(name=scene.name("c"), topic_id=UNKNOWN_ID)],
        ):
            yield Ask(DeleteTopicsRequest(topics=states, timeout_ms=5000), version)
    yield delete(a)
    yield delete(a)
    yield metadata(a, b, scene.name("c"))


def growing(scene: Scene, version: int) -> Talk:
    """Add partitions."""
    a = scene.name("a")
    yield create(topic(a, 2))

    def grow(*topics: tuple[str, int, list[list[int]] | None], only: bool = False) -> Ask:
        wanted = [
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if placed is None
                else [CreatePartitionsAssignment(broker_ids=ids) for ids in placed],
            )
            for name, count, placed in topics
        ]
        request = CreatePartitionsRequest(topics=wanted, timeout_ms=5000, validate_only=only)
        return Ask(request, version)

    yield grow()
    yield grow((a, 3, None), only=True)
    yield grow((a, 3, None))
    for count in (3, 2, 0, -1):
        yield grow((a, count, None))
    yield grow((scene.name("unknown"), 3, None))
    yield grow((a, 4, None), (a, 5, None))
    yield grow((a, 4, None), (scene.name("unknown"), 4, None))
    placements: list[list[list[int]]] = [[[1]], [], [[]], [[1], [1]], [[9]], [[1, 1]], [[-1]]]
    for placed in placements:
        yield grow((a, 6, placed))
    yield grow((a, 7, [[1]]))
    yield grow(("", 7, None))
    yield grow(("__consumer_offsets", 3, None))
    yield metadata(a)


def describing(scene: Scene, version: int) -> Talk:
    """Request metadata: of all topics, none, some, unknown ones; by id if the version has ids."""
    a = scene.name("a")
    answer = yield create(topic(a, 2), topic(scene.name("b")))
    topic_id = answer.first("topic_id", bytes(16))
    yield Ask(MetadataRequest(topics=None if version else []), version)
    if version:
        yield Ask(MetadataRequest(topics=[]), version)
    yield metadata(a, scene.name("b"), version=version, create_them=version < 4)
    yield metadata(a, a, version=version, create_them=version < 4)
    yield metadata("a b", version=version, create_them=version < 4)
    yield metadata("", version=version, create_them=version < 4)
    yield metadata("__consumer_offsets", version=version, create_them=version < 4)
    if version >= 4:
        yield metadata(scene.name("unknown"), version=version)
    yield metadata(scene.name("made"), version=version, create_them=True)
    yield metadata(scene.name("made"), version=version, create_them=True)
    if version >= 8:
        topics = [MetadataRequestTopic(name=a)]
        request = MetadataRequest(topics=topics, include_topic_authorized_operations=True)
        if version <= 10:
            request.include_cluster_authorized_operations = True
        yield Ask(request, version)
    if version >= 10:
        for named, wanted in (
            (None, topic_id),
            (None, UNKNOWN_ID),
            (None, bytes(16)),
            (a, topic_id),
            (a, UNKNOWN_ID),
        ):
            topics = [MetadataRequestTopic(name=named, topic_id=wanted)]
            yield Ask(MetadataRequest(topics=topics), version)


def describing_partitions(scene: Scene) -> Talk:
    """Page through partitions with DescribeTopicPartitions."""
    a, b = scene.name("a"), scene.name("b")
    yield create(topic(a, 3), topic(b, 2))

    def ask(names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Ask:
        place = DescribeTopicPartitionsRequestCursor()
        if cursor is not None:
            place.topic_name, place.partition_index = cursor
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else place,
        )
        return Ask(request, 0)

    yield ask([a, b])
    yield ask([b, a, a])
    for limit in (1, 2, 3, 4, 5, 0, -1):
        yield ask([a, b], limit)
    for cursor in ((a, 1), (a, 3), (b, 0), (a, -1), (scene.name("aa"), 0), ("", 0), ("zzz", 1)):
        yield ask([a, b], 2000, cursor)
    yield ask([scene.name("unknown")])
    yield ask(["a b"])
    yield ask([""])
    yield ask([a, scene.name("unknown"), b], 2)


def emptying(scene: Scene, version: int) -> Talk:
    """Delete records up to an offset."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 2)

    def delete(*wanted: tuple[str, int, int]) -> Ask:
        topics = [
            DeleteRecordsTopic(
                name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
            )
            for name, index, offset in wanted
        ]
        return Ask(DeleteRecordsRequest(topics=topics, timeout_ms=3000), version)

    yield delete()
    yield delete((a, 0, 1))
    yield delete((a, 0, 0))
    yield delete((a, 0, 3))
    yield from list_offsets(a, -2, -1)
    yield fetch(a, 0)
    yield fetch(a, 3)
    for offset in (7, -2, 1 << 40):
        yield delete((a, 0, offset))
    yield delete((a, 5, 0))
    yield delete((scene.name("unknown"), 0, 0))
    yield delete((a, 1, 0), (a, 0, 4))
    yield delete((a, 0, -1))
    yield from list_offsets(a, -2, -1)
    yield delete(("__consumer_offsets", 0, 0))


WRITTEN: dict[str, Dialogue] = {
    **each_version("topics/create", "CreateTopics", creating),
    **each_version("topics/create-counts", "CreateTopics", creating_wrong_counts),
    "topics/create-bad-names": creating_bad_names,
    "topics/create-assigned": assigning,
    "topics/create-configs": creating_with_configs,
    **each_version("topics/delete", "DeleteTopics", deleting),
    **each_version("topics/partitions", "CreatePartitions", growing),
    **each_version("topics/metadata", "Metadata", describing),
    "topics/describe-partitions": describing_partitions,
    **each_version("topics/delete-records", "DeleteRecords", emptying),
}
