"""Dialogues about Fetch, ListOffsets and OffsetForLeaderEpoch: versions, sessions, limits,
epochs.
"""

from collections.abc import Sequence

from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.talk.requests import batch
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import (
    START_MS,
    create,
    each_version,
    fetch,
    list_offsets,
    produce,
    topic,
    versions,
    with_topic,
)
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

LIMITS = (0, 1, 60, 75, 150, 160, 1000, -1)


def by_version(scene: Scene, version: int) -> Talk:
    """Fetch from every position of a log, and from missing partitions."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 2)
    made = yield create(topic(scene.name("b")))
    by_id = version >= 13
    described = yield _describe(a)
    name = described.first("topic_id", bytes(16)) if by_id else a
    other = made.first("topic_id", bytes(16)) if by_id else scene.name("b")
    for offset in (0, 1, 2, 5, 6, 7, -1, 1 << 40, -2):
        yield fetch(name, offset, version=version)
    yield fetch(name, 0, version=version, partition=1)
    for partition in (2, -1):
        yield fetch(name, 0, version=version, partition=partition)
    yield fetch(other, 0, version=version)
    yield fetch(UNKNOWN_ID if by_id else scene.name("unknown"), 0, version=version)
    yield fetch(bytes(16) if by_id else "", 0, version=version)
    yield fetch(name, 0, version=version, isolation_level=1)
    yield fetch(name, 0, version=version, isolation_level=2)
    for limit in LIMITS:
        yield fetch(name, 0, version=version, max_bytes=limit)
        yield fetch(name, 0, version=version, partition_max_bytes=limit)
    if version >= 9:
        for epoch in (0, 1, 5, -2):
            yield fetch(name, 0, version=version, leader_epoch=epoch)
    if version <= 14:
        yield fetch(name, 0, version=version, replica_id=-2)
    yield fetch(name, 6, version=version, max_wait_ms=50, min_bytes=1)
    yield fetch(name, 0, version=version, max_wait_ms=50, min_bytes=1 << 20)
    yield fetch(name, 0, version=version, max_wait_ms=0, min_bytes=0)
    yield fetch(name, 6, version=version, max_wait_ms=-1, min_bytes=1)
    yield _whole(version, [])


def _describe(name: str) -> Ask:
    return Ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)


def _whole(
    version: int,
    wanted: Sequence[tuple[str | bytes, int, int]],
    *,
    session: tuple[int, int] = (0, -1),
    forgotten: Sequence[tuple[str | bytes, int]] = (),
    max_bytes: int = 1 << 20,
) -> Ask:
    """Return a fetch of several partitions: topic, partition, offset."""
    topics: dict[str | bytes, FetchTopic] = {}
    for name, index, offset in wanted:
        entry = topics.setdefault(name, FetchTopic(partitions=[]))
        if isinstance(name, str):
            entry.topic = name
        else:
            entry.topic_id = name
        entry.partitions.append(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        )
    left = []
    for name, index in forgotten:
        gone = ForgottenTopic(partitions=[index])
        if isinstance(name, str):
            gone.topic = name
        else:
            gone.topic_id = name
        left.append(gone)
    request = FetchRequest(
        max_wait_ms=20, min_bytes=1, max_bytes=max_bytes, topics=list(topics.values())
    )
    if version >= 7:
        request.session_id, request.session_epoch = session
        request.forgotten_topics_data = left
    return Ask(request, version)


def sessions(scene: Scene, version: int) -> Talk:
    """Open a session, continue it, forget partitions, use wrong epochs, close it."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 3)
    described = yield _describe(a)
    name: str | bytes = described.first("topic_id", bytes(16)) if version >= 13 else a
    unknown: str | bytes = UNKNOWN_ID if version >= 13 else scene.name("unknown")
    answer = yield _whole(version, [(name, 0, 0), (name, 1, 0)], session=(0, 0))
    sid = answer.first("session_id", 0)
    yield _whole(version, [], session=(sid, 1))
    yield _whole(version, [(name, 0, 6)], session=(sid, 2))
    yield produce(a, batch(1), partition=1)
    yield _whole(version, [], session=(sid, 3))
    yield _whole(version, [(name, 1, 1)], session=(sid, 4))
    yield _whole(version, [(name, 2, 0)], session=(sid, 5), forgotten=[(name, 0)])
    yield produce(a, batch(1))
    yield _whole(version, [], session=(sid, 6))
    yield _whole(version, [], session=(sid, 6))
    yield _whole(version, [], session=(sid, 9))
    yield _whole(version, [(unknown, 0, 0)], session=(sid, 7))
    yield _whole(version, [], session=(sid, 8))
    yield _whole(version, [(name, 9, 0)], session=(sid, 9))
    yield _whole(version, [(name, 0, 100)], session=(sid, 10))
    yield _whole(version, [], session=(sid, 11), forgotten=[(unknown, 0)])
    yield _whole(version, [], session=(sid ^ 1, 1))
    yield _whole(version, [], session=(0, 1))
    yield _whole(version, [(name, 0, 0)], session=(sid, -1))
    yield _whole(version, [], session=(sid, 12))
    yield _whole(version, [], session=(0, 0))
    yield _whole(version, [], session=(0, -2))
    again = yield _whole(version, [(name, 0, 0)], session=(0, 0))
    yield _whole(version, [(name, 1, 0)], session=(again.first("session_id", 0), 0))


def many_partitions(scene: Scene, version: int) -> Talk:
    """Fetch several partitions under one limit, some of them twice."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 3)
    for index in (1, 2):
        yield produce(a, batch(4, value=b"x" * 100), partition=index)
    described = yield _describe(a)
    name: str | bytes = described.first("topic_id", bytes(16)) if version >= 13 else a
    for limit in LIMITS:
        yield _whole(version, [(name, 0, 0), (name, 1, 0), (name, 2, 0)], max_bytes=limit)
    yield _whole(version, [(name, 2, 0), (name, 0, 9), (name, 7, 0)])
    yield _whole(version, [(name, 0, 0), (name, 0, 2)])


def diverging(scene: Scene) -> Talk:
    """Fetch with the epoch that was read last."""
    a = scene.name("a")
    yield from with_topic(scene)
    for epoch in (0, 1, -1):
        yield fetch(a, 3, last_fetched_epoch=epoch)
        yield fetch(a, 9, last_fetched_epoch=epoch)


def offsets_by_version(scene: Scene, version: int) -> Talk:
    """List offsets by every special time, by time, with epochs."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 2)
    special = (-1, -2, -3, -4, -5, -6, -7, -100)
    times = (0, 1, START_MS - 1, START_MS, START_MS + 1, START_MS + 1001, START_MS + 5000, 1 << 50)
    yield from list_offsets(a, *special, *times, version=version)
    yield from list_offsets(a, *special, START_MS, version=version, partition=1)
    yield from list_offsets(a, -1, version=version, partition=5)
    yield from list_offsets(a, -1, version=version, partition=-1)
    yield from list_offsets(scene.name("unknown"), -1, -3, 5, version=version)
    yield from list_offsets("", -1, version=version)
    if version >= 2:
        yield from list_offsets(a, -1, -2, -3, START_MS, version=version, isolation=1)
        yield from list_offsets(a, -1, version=version, isolation=2)
    if version >= 4:
        for epoch in (0, 1, 5):
            yield from list_offsets(a, -1, -2, START_MS, version=version, leader_epoch=epoch)
    twice = [ListOffsetsPartition(partition_index=0, timestamp=t) for t in (-1, -2)]
    for partitions in (twice, []):
        for replica in (-1, -2, 5):
            wanted = [ListOffsetsTopic(name=a, partitions=partitions)]
            yield Ask(ListOffsetsRequest(replica_id=replica, topics=wanted), version)
    yield Ask(ListOffsetsRequest(replica_id=-1, topics=[]), version)


def epochs(scene: Scene, version: int) -> Talk:
    """Request the end offsets of leader epochs."""
    a = scene.name("a")
    yield from with_topic(scene, "a", 2)

    def ask(name: str, index: int, current: int, epoch: int) -> Ask:
        partition = OffsetForLeaderPartition(
            partition=index, current_leader_epoch=current, leader_epoch=epoch
        )
        wanted = [OffsetForLeaderTopic(topic=name, partitions=[partition])]
        request = OffsetForLeaderEpochRequest(topics=wanted)
        if version >= 3:
            request.replica_id = -1
        return Ask(request, version)

    for index in (0, 1):
        for current in (-1, 0, 1, 5):
            for epoch in (-1, 0, 1, 5, -2):
                yield ask(a, index, current, epoch)
    yield ask(a, 7, -1, 0)
    yield ask(scene.name("unknown"), 0, -1, 0)
    yield ask("", 0, -1, 0)
    yield Ask(OffsetForLeaderEpochRequest(topics=[]), version)


def _session_dialogues() -> dict[str, Dialogue]:
    def at(version: int) -> Dialogue:
        return lambda scene: sessions(scene, version)

    return {f"fetch/sessions-v{v}": at(v) for v in versions("Fetch") if v >= 7}


WRITTEN: dict[str, Dialogue] = {
    **each_version("fetch/basics", "Fetch", by_version),
    **_session_dialogues(),
    **each_version("fetch/many-partitions", "Fetch", many_partitions),
    "fetch/diverging": diverging,
    **each_version("offsets/list", "ListOffsets", offsets_by_version),
    **each_version("offsets/epochs", "OffsetForLeaderEpoch", epochs),
}
