"""The configs of one topic, resolved once into plain attributes.

    override of the topic  >  default from the broker's settings  >  default of the table

A stored override was valid when it was taken, yet `resolve` parses it again, so that a
config which a newer broker wrote is refused by name and not misread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from barnabas.metadata.config_definition import ConfigDefinition, unknown
from barnabas.metadata.topic_config_table import DEFINITIONS
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import Settings

__all__ = [
    "DEFINITIONS",
    "WANTED_FACTOR",
    "TopicConfig",
    "defaults_from",
    "definition",
    "resolve",
    "validate",
]

WANTED_FACTOR = "barnabas.replication.factor"
"""The read-only config in which DescribeConfigs shows the wanted replication factor of a topic.
A broker that has a topic created on demand sends it too, to accept fewer replicas for now."""

CONFIGS_KEPT = 256
COMPACT = "compact"
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The typed value of every topic config; the table documents each under its dotted name."""

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    errors_deadletterqueue_group_enable: bool
    file_delete_delay_ms: int
    flush: str
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @property
    def compacts(self) -> bool:
        """Whether compaction keeps only the last value of each key."""
        return COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @property
    def seal_after_ms(self) -> int:
        """The age at which a segment is sealed; only sealed segments are compacted."""
        if self.compacts:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def flush_on_ack(self) -> bool:
        """Whether a produce request is answered only after its fsync."""
        return self.flush == "ack" or self.flush_messages == 1

    @property
    def stamps_on_append(self) -> bool:
        """Whether a record gets the time of its arrival instead of the producer's."""
        return self.message_timestamp_type == "LogAppendTime"


def definition(name: str) -> ConfigDefinition:
    """Return the definition of a config, or raise INVALID_CONFIG with the nearest name."""
    found = DEFINITIONS.get(name)
    if found is None:
        raise unknown("topic", name, DEFINITIONS)
    return found


def validate(name: str, value: str) -> None:
    """Raise INVALID_CONFIG with the allowed values unless a topic may have this value."""
    definition(name).parse(value)


def resolve(
    overrides: Mapping[str, str] = _NONE, defaults: Mapping[str, str] = _NONE
) -> TopicConfig:
    """Return the config of a topic, or raise INVALID_CONFIG for an invalid value.

    Most topics share a few configs, and to work one out takes long: the last ones are kept.
    """
    return _resolved(tuple({**defaults, **overrides}.items()))


@lru_cache(maxsize=CONFIGS_KEPT)
def _resolved(settings: tuple[tuple[str, str], ...]) -> TopicConfig:
    values = {name: known.default for name, known in DEFINITIONS.items()}
    for name, value in settings:
        definition(name)
        values[name] = value
    typed: dict[str, Any] = {
        name.replace(".", "_"): DEFINITIONS[name].parse(value) for name, value in values.items()
    }
    config = TopicConfig(**typed)
    _check_together(config)
    return config


def defaults_from(settings: Settings) -> dict[str, str]:
    """Return the topic defaults from the broker's settings, by topic config name."""
    storage, replication = settings.storage, settings.replication
    return {
        "cleanup.policy": storage.cleanup_policy,
        "delete.retention.ms": str(storage.delete_retention_ms),
        "file.delete.delay.ms": str(storage.file_delete_delay_ms),
        "flush": storage.flush,
        "flush.ms": str(storage.fsync_interval_ms),
        "index.interval.bytes": str(storage.index_interval_bytes),
        "max.message.bytes": str(settings.performance.max_message_bytes),
        "min.cleanable.dirty.ratio": str(storage.min_cleanable_dirty_ratio),
        "min.compaction.lag.ms": str(storage.min_compaction_lag_ms),
        "min.insync.replicas": str(replication.min_insync_replicas),
        "retention.bytes": str(storage.retention_bytes),
        "retention.ms": str(storage.retention_ms),
        "segment.bytes": str(storage.segment_bytes),
        "segment.index.bytes": str(storage.index_bytes),
        "segment.ms": str(storage.segment_ms),
        "unclean.leader.election.enable": str(replication.unclean_leader_election).lower(),
    }


def _check_together(config: TopicConfig) -> None:
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        message = (
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) must not be above "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})."
        )
        raise ApiError(ErrorCode.INVALID_CONFIG, message)
