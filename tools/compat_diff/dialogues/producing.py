"""Dialogues about Produce: versions, acks, broken batches, codecs, sequences, timestamps."""

import struct
import time
from collections.abc import Iterator

from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import CONTROL, TRANSACTIONAL, Record, build, checksum
from tests.support.talk.requests import batch
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import (
    START_MS,
    create,
    each_version,
    fetch,
    init_producer,
    list_offsets,
    metadata,
    produce,
    topic,
)
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

HOUR_MS = 3_600_000


def resealed(content: bytearray) -> bytearray:
    """Return a batch with a correct checksum after a change."""
    struct.pack_into(">I", content, 17, checksum(content))
    return content


def patched(place: int, form: str, value: int, content: bytearray | None = None) -> bytearray:
    """Return a batch with one changed header field and a correct checksum."""
    changed = batch(2) if content is None else content
    struct.pack_into(form, changed, place, value)
    return resealed(changed)


def by_version(scene: Scene, version: int) -> Talk:
    """Produce in one version: correctly, to missing topics, with every acks, nothing at all."""
    a = scene.name("a")
    answer = yield create(topic(a, 2))
    by_id = version >= 13
    name = answer.first("topic_id", bytes(16)) if by_id else a
    unknown = UNKNOWN_ID if by_id else scene.name("unknown")
    for acks in (-1, 1, 0, 2, -2):
        yield produce(name, batch(3), version=version, acks=acks)
    yield produce(name, batch(1), version=version, partition=1)
    for partition in (2, -1):
        yield produce(name, batch(1), version=version, partition=partition)
    yield produce(unknown, batch(1), version=version)
    yield produce(bytes(16) if by_id else "", batch(1), version=version)
    yield produce(unknown, batch(1), version=version, acks=0)
    yield produce(name, None, version=version)
    yield produce(name, b"", version=version)
    yield produce(name, b"short", version=version)
    yield produce(name, batch(1) + batch(1), version=version)
    yield produce(name, batch(2)[:-1], version=version)
    yield produce(name, bytes(61), version=version)
    broken = batch(1)
    broken[-1] ^= 1
    yield produce(name, broken, version=version)
    yield produce(name, broken, version=version, acks=0)
    yield produce(name, patched(16, ">b", 1), version=version)
    yield Ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]), version)
    yield fetch(a, 0)
    yield produce(name, batch(2) + b"x", version=version)


def several(scene: Scene) -> Talk:
    """Produce to several partitions and topics at once, some of them twice or unknown."""
    a, b = scene.name("a"), scene.name("b")
    yield create(topic(a, 2), topic(b))

    def many(*wanted: tuple[str, int], acks: int = -1) -> Ask:
        data: dict[str, list[PartitionProduceData]] = {}
        for name, index in wanted:
            entry = PartitionProduceData(index=index, records=bytes(batch(1)))
            data.setdefault(name, []).append(entry)
        topics = [TopicProduceData(name=name, partition_data=p) for name, p in data.items()]
        return Ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics), 9)

    yield many((a, 0), (a, 1), (b, 0))
    yield many((a, 0), (a, 7), (b, 0))
    yield many((a, 0), (scene.name("unknown"), 0))
    yield many((a, 0), (a, 9), acks=0)
    yield from list_offsets(a, -1)
    yield many((a, 1), (a, 1))
    entry = PartitionProduceData(index=0, records=bytes(batch(1)))
    twice = [TopicProduceData(name=a, partition_data=[entry]) for _ in range(2)]
    yield Ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=twice), 9)


def broken_batches() -> Iterator[tuple[str, bytearray]]:
    """Return batches with one invalid header field and a correct checksum."""
    yield "base offset", patched(0, ">q", 5)
    yield "negative base offset", patched(0, ">q", -5)
    yield "length 0", patched(8, ">i", 0)
    yield "length short", patched(8, ">i", 30)
    yield "length long", patched(8, ">i", 1 << 20)
    yield "negative length", patched(8, ">i", -1)
    yield "leader epoch", patched(12, ">i", 9)
    for magic in (0, 1, 3, -1):
        yield f"magic {magic}", patched(16, ">b", magic)
    for codec in (5, 6, 7):
        yield f"codec {codec}", patched(21, ">h", codec)
    yield "attributes", patched(21, ">h", 1 << 9)
    yield "delete horizon", patched(21, ">h", 1 << 6)
    yield "append time", patched(21, ">h", 1 << 3)
    yield "control", patched(21, ">h", CONTROL)
    yield "control and transactional", patched(21, ">h", CONTROL | TRANSACTIONAL)
    for delta in (0, 2, -1, 1 << 30):
        yield f"last offset delta {delta}", patched(23, ">i", delta)
    for count in (0, 1, 3, -1):
        yield f"count {count}", patched(57, ">i", count)
    yield "max timestamp", patched(35, ">q", START_MS + 5000)
    yield "max timestamp -1", patched(35, ">q", -1)
    yield "producer without epoch", patched(43, ">q", 4000)
    yield "sequence without producer", patched(53, ">i", 0)


def broken(scene: Scene) -> Talk:
    """Send every invalid batch, then read what was accepted."""
    a = scene.name("a")
    contents = [content for _, content in broken_batches()]
    yield create(topic(a, len(contents)))
    for partition, content in enumerate(contents):
        yield produce(a, content, partition=partition)


def broken_records(scene: Scene) -> Talk:
    """Send batches with a valid header and invalid records."""
    a = scene.name("a")
    yield create(topic(a, 6))
    good = batch(2)
    for partition, place in enumerate((61, 62, 63, 64, 65, 66)):
        content = bytearray(good)
        content[place] ^= 0x20
        yield produce(a, resealed(content), partition=partition)


def codecs(scene: Scene, version: int) -> Talk:
    """Send batches of every codec, to a topic of each compression type."""
    names = {kind: scene.name(kind) for kind in ("producer", "uncompressed", "gzip", "zstd", "lz4")}
    for kind, name in names.items():
        yield create(topic(name, config={"compression.type": kind}))
    for name in names.values():
        for codec in Codec:
            yield produce(name, batch(5, codec=codec, value=b"v" * 50), version=version)
        yield fetch(name, 0)
        yield fetch(name, 7, version=4)


def bad_compression(scene: Scene) -> Talk:
    """Mark records as compressed that are not."""
    a = scene.name("a")
    yield create(topic(a), topic(scene.name("gzip"), config={"compression.type": "gzip"}))
    for codec in (1, 2, 3, 4):
        yield produce(a, patched(21, ">h", codec))
        yield produce(scene.name("gzip"), patched(21, ">h", codec))


def sizes(scene: Scene) -> Talk:
    """Send batches around the largest size that a topic accepts."""
    a = scene.name("a")
    yield create(topic(a, config={"max.message.bytes": "1000"}))
    for size in (100, 900, 928, 929, 930, 931, 932, 940, 2000):
        yield produce(a, batch(1, value=b"v" * size))
    yield create(topic(scene.name("b")))
    yield produce(scene.name("b"), batch(1, value=b"v" * 1_048_600))
    yield produce(scene.name("b"), batch(1, value=b"v" * 1_048_400))
    yield produce(a, batch(100, value=b"v" * 100, codec=Codec.GZIP))


def timestamps(scene: Scene) -> Talk:
    """Send old, new and missing timestamps to topics with and without limits."""
    now = int(time.time() * 1000)
    a, b, c = scene.name("a"), scene.name("b"), scene.name("c")
    yield create(topic(a))
    yield create(topic(b, config={"message.timestamp.type": "LogAppendTime"}))
    limits = {
        "message.timestamp.before.max.ms": str(HOUR_MS),
        "message.timestamp.after.max.ms": str(HOUR_MS),
    }
    yield create(topic(c, config=limits))
    for name in (a, b, c):
        for start_ms in (now, now - 30 * HOUR_MS, now - 2 * HOUR_MS, now + 2 * HOUR_MS, -1, 0, -5):
            yield produce(name, batch(1, start_ms=start_ms))
        yield from list_offsets(name, -1, -2, -3, now - HOUR_MS * 3, 0)
    yield fetch(b, 0)


def compacted(scene: Scene) -> Talk:
    """Send records without keys to a compacted topic."""
    a = scene.name("a")
    yield create(topic(a, config={"cleanup.policy": "compact"}))
    yield produce(a, batch(1))
    yield produce(a, batch(1, key=None))
    mixed = build([Record(0, START_MS, b"k", b"v"), Record(1, START_MS, None, b"v")])
    yield produce(a, mixed)
    yield produce(a, batch(2, key=None, codec=Codec.GZIP))
    yield produce(a, batch(2, key=b"", codec=Codec.ZSTD))
    yield produce(a, patched(21, ">h", CONTROL))
    yield from list_offsets(a, -1)


def sequences(scene: Scene, version: int) -> Talk:
    """Send batches of an idempotent producer: in order, repeated, with gaps, of old epochs."""
    a = scene.name("a")
    made = yield create(topic(a, 2))
    name = made.first("topic_id", bytes(16)) if version >= 13 else a
    answer = yield init_producer()
    pid = answer.first("producer_id", 0)

    def send(epoch: int, sequence: int, count: int = 2, partition: int = 0) -> Ask:
        content = batch(count, producer=(pid, epoch, sequence))
        return produce(name, content, version=version, partition=partition)

    for epoch, sequence in (
        *((0, 0), (0, 0), (0, 2), (0, 2), (0, 0), (0, 6), (0, 3), (0, 4), (0, 1)),
        *((1, 5), (1, 0), (0, 6), (1, 2), (1, 0), (3, 0), (2, 2)),
    ):
        yield send(epoch, sequence)
    for sequence in (2, 4, 6, 8, 10, 12, 14):
        yield send(3, sequence)
    for sequence in (2, 4, 6, 10, 14):
        yield send(3, sequence)
    yield send(3, 14, 1)
    yield send(3, 16, 3)
    yield send(3, 7, partition=1)
    yield send(3, 2147483646, partition=1)
    yield send(-1, 0)
    yield send(3, -1)
    yield produce(name, batch(1, producer=(pid + 5000, 0, 3)), version=version)
    yield produce(name, batch(1, producer=(-2, 0, 0)), version=version)
    yield from list_offsets(a, -1)


def wrapping(scene: Scene) -> Talk:
    """Let a sequence pass its largest value."""
    a = scene.name("a")
    yield create(topic(a))
    answer = yield init_producer()
    pid = answer.first("producer_id", 0)
    for sequence, count in ((2147483645, 2), (2147483647, 2), (1, 1), (2147483647, 2), (2, 1)):
        yield produce(a, batch(count, producer=(pid, 0, sequence)))


def unasked_transactional(scene: Scene, version: int) -> Talk:
    """Send transactional batches without an open transaction."""
    a, tid = scene.name("a"), scene.name("txn")
    made = yield create(topic(a))
    name = made.first("topic_id", bytes(16)) if version >= 13 else a
    answer = yield init_producer(tid)
    pid = answer.first("producer_id", 0)
    content = batch(1, attributes=TRANSACTIONAL, producer=(pid, 0, 0))
    yield produce(name, content, version=version)
    yield produce(name, batch(1), version=version, transactional_id=tid)
    wrong = batch(1, attributes=TRANSACTIONAL, producer=(pid + 1, 0, 0))
    yield produce(name, wrong, version=version, transactional_id=tid)
    wrong = batch(1, attributes=TRANSACTIONAL, producer=(pid, 7, 0))
    yield produce(name, wrong, version=version, transactional_id=tid)
    yield produce(name, content, version=version, transactional_id=scene.name("other"))
    yield produce(name, content, version=version, transactional_id=tid)
    yield from list_offsets(a, -1)
    wrong = batch(1, attributes=TRANSACTIONAL)
    yield produce(name, wrong, version=version, transactional_id=tid)


def internal(scene: Scene) -> Talk:
    """Write to internal topics, and to a topic that is created automatically."""
    yield produce("__consumer_offsets", batch(1))
    yield produce("__cluster_metadata", batch(1))
    yield produce(scene.name("on-demand"), batch(1))
    yield metadata(scene.name("on-demand"))


WRITTEN: dict[str, Dialogue] = {
    **each_version("produce/basics", "Produce", by_version),
    "produce/several": several,
    "produce/broken-batches": broken,
    "produce/broken-records": broken_records,
    **{
        name: talk
        for name, talk in each_version("produce/codecs", "Produce", codecs).items()
        if name.endswith(("v3", "v6", "v7", "v11"))
    },
    "produce/bad-compression": bad_compression,
    "produce/sizes": sizes,
    "produce/timestamps": timestamps,
    "produce/compacted": compacted,
    **each_version("produce/sequences", "Produce", sequences),
    "produce/wrapping": wrapping,
    **each_version("produce/unasked-transactional", "Produce", unasked_transactional),
    "produce/internal": internal,
}
