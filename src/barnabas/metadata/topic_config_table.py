"""Kafka's topic configs as a table, with the values and defaults of Apache Kafka 4.

Where this broker differs, it says so here:
- `flush` is ours: with `ack`, the default, a produce is answered after its fsync.
- `flush.ms` defaults to one second, not to never: `flush=interval` bounds what a power cut loses.
- `segment.bytes` may be as small as 1024, so that a test can roll segments quickly.
- The `remote` configs can only be false, as there is no tiered storage.
"""

from barnabas.metadata.config_definition import (
    LONG_MAX,
    ConfigDefinition,
    ConfigType,
    Rule,
    boolean,
    choice,
    int32,
    int64,
    only_false,
    ratio,
    subset,
    throttled_replicas,
)

SEGMENT_BYTES_MIN = 1024
_DAY_MS = 86_400_000


def _define(
    name: str, rule: Rule, default: str | int | float, documentation: str, *synonyms: str
) -> ConfigDefinition:
    return ConfigDefinition(
        name=name,
        rule=rule,
        default=str(default),
        documentation=documentation,
        synonyms=synonyms,
    )


def _gzip_level(text: str) -> int:
    level = int32(-1, 9).parse(text)
    if level == 0:  # zlib has a level 0, Kafka has not
        raise ValueError
    assert isinstance(level, int)
    return level


_TABLE = (
    _define(
        "cleanup.policy",
        subset("compact", "delete"),
        "delete",
        "delete drops old segments, compact keeps the last value of each key; none keeps all.",
        "log.cleanup.policy",
    ),
    _define(
        "compression.gzip.level",
        Rule(ConfigType.INT, "-1 or a whole number from 1 to 9", _gzip_level),
        -1,
        "The compression level if the broker compresses with gzip.",
        "compression.gzip.level",
    ),
    _define(
        "compression.lz4.level",
        int32(1, 17),
        9,
        "The compression level if the broker compresses with lz4.",
        "compression.lz4.level",
    ),
    _define(
        "compression.type",
        choice("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "producer",
        "The compression of stored batches; producer keeps that of the producer.",
        "compression.type",
    ),
    _define(
        "compression.zstd.level",
        int32(-131_072, 22),
        3,
        "The compression level if the broker compresses with zstd.",
        "compression.zstd.level",
    ),
    _define(
        "delete.retention.ms",
        int64(0),
        _DAY_MS,
        "How long a compacted topic keeps the marker of a deleted key.",
        "log.cleaner.delete.retention.ms",
    ),
    _define(
        "errors.deadletterqueue.group.enable",
        boolean(),
        "false",
        "Whether share groups may write dead letters to the topic.",
    ),
    _define(
        "file.delete.delay.ms",
        int64(0),
        60_000,
        "How long after its deletion a segment is removed from the disk.",
        "log.segment.delete.delay.ms",
    ),
    _define(
        "flush",
        choice("ack", "interval"),
        "ack",
        "ack answers a produce after its fsync; interval answers at once, and a power cut may "
        "lose what was written within flush.ms.",
        "log.flush",
    ),
    _define(
        "flush.messages",
        int64(1),
        LONG_MAX,
        "An fsync runs after this many records; 1 is the same as flush=ack.",
        "log.flush.interval.messages",
    ),
    _define(
        "flush.ms",
        int64(0),
        1000,
        "The longest time that a record waits for its fsync if flush is interval.",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
    ),
    _define(
        "follower.replication.throttled.replicas",
        throttled_replicas(),
        "",
        "The replicas whose replication is throttled on the follower. Kept without effect: "
        "the rate applies to all out-of-sync replicas.",
    ),
    _define(
        "index.interval.bytes",
        int32(0),
        4096,
        "An index entry is written after about this many bytes of log.",
        "log.index.interval.bytes",
    ),
    _define(
        "leader.replication.throttled.replicas",
        throttled_replicas(),
        "",
        "The replicas whose replication is throttled on the leader. Kept without effect: "
        "only followers are throttled.",
    ),
    _define(
        "local.retention.bytes",
        int64(-2),
        -2,
        "With tiered storage, what stays on the local disk; -2 follows retention.bytes. Kept "
        "without effect: there is no tiered storage.",
        "log.local.retention.bytes",
    ),
    _define(
        "local.retention.ms",
        int64(-2),
        -2,
        "With tiered storage, how long records stay on the local disk; -2 follows retention.ms. "
        "Kept without effect: there is no tiered storage.",
        "log.local.retention.ms",
    ),
    _define(
        "max.compaction.lag.ms",
        int64(1),
        LONG_MAX,
        "A record is compacted at the latest when it is this old; its segment is sealed for that.",
        "log.cleaner.max.compaction.lag.ms",
    ),
    _define(
        "max.message.bytes",
        int32(0),
        1_048_588,
        "The largest accepted record batch.",
        "message.max.bytes",
    ),
    _define(
        "message.timestamp.after.max.ms",
        int64(0),
        3_600_000,
        "How far a record's timestamp may be ahead of the broker's clock.",
        "log.message.timestamp.after.max.ms",
    ),
    _define(
        "message.timestamp.before.max.ms",
        int64(0),
        LONG_MAX,
        "How far a record's timestamp may be behind the broker's clock.",
        "log.message.timestamp.before.max.ms",
    ),
    _define(
        "message.timestamp.type",
        choice("CreateTime", "LogAppendTime"),
        "CreateTime",
        "Whether a record keeps its producer's time or gets the time of its arrival.",
        "log.message.timestamp.type",
    ),
    _define(
        "min.cleanable.dirty.ratio",
        ratio(),
        0.5,
        "A log is compacted once this share of it has not been compacted before.",
        "log.cleaner.min.cleanable.ratio",
    ),
    _define(
        "min.compaction.lag.ms",
        int64(0),
        0,
        "Records younger than this are never compacted away.",
        "log.cleaner.min.compaction.lag.ms",
    ),
    _define(
        "min.insync.replicas",
        int32(1),
        1,
        "A write with acks=all is refused while fewer replicas than this are in sync.",
        "min.insync.replicas",
    ),
    _define(
        "preallocate",
        boolean(),
        "false",
        "Whether a segment file takes its whole size on disk when it is begun. Kept without "
        "effect: this broker never does.",
        "log.preallocate",
    ),
    _define(
        "remote.log.copy.disable",
        only_false("this broker has no tiered storage"),
        "false",
        "Whether no more segments are copied to tiered storage.",
    ),
    _define(
        "remote.log.delete.on.disable",
        only_false("this broker has no tiered storage"),
        "false",
        "Whether records in tiered storage are deleted when it is disabled.",
    ),
    _define(
        "remote.storage.enable",
        only_false("this broker has no tiered storage"),
        "false",
        "Whether old segments move to tiered storage.",
    ),
    _define(
        "retention.bytes",
        int64(-1),
        -1,
        "The oldest segments are deleted when a partition exceeds this; -1 keeps them.",
        "log.retention.bytes",
    ),
    _define(
        "retention.ms",
        int64(-1),
        7 * _DAY_MS,
        "Records older than this are deleted, in whole segments; -1 keeps them.",
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ),
    _define(
        "segment.bytes",
        int32(SEGMENT_BYTES_MIN),
        2**30,
        "A new segment starts before the last one exceeds this; a larger batch is refused.",
        "log.segment.bytes",
    ),
    _define(
        "segment.index.bytes",
        int32(4),
        10_485_760,
        "A new segment starts before an index exceeds this.",
        "log.index.size.max.bytes",
    ),
    _define(
        "segment.jitter.ms",
        int64(0),
        0,
        "segment.ms is reduced by up to this much, so that segments do not all roll together.",
        "log.roll.jitter.ms",
        "log.roll.jitter.hours",
    ),
    _define(
        "segment.ms",
        int64(1),
        7 * _DAY_MS,
        "A new segment starts when the last one is older than this.",
        "log.roll.ms",
        "log.roll.hours",
    ),
    _define(
        "unclean.leader.election.enable",
        boolean(),
        "false",
        "Whether a replica that is out of sync may lead when no other is left, at the price of "
        "acknowledged records.",
        "unclean.leader.election.enable",
    ),
)


DEFINITIONS = {definition.name: definition for definition in _TABLE}
