"""Read the `topics` section: topics that the broker creates at the start.

A topic has `partitions`, `replication_factor`, the storage keys that topics inherit
(`retention_time: 30d`), and any of Kafka's topic configs under its own name and in Kafka's units
(`retention.ms: 2592000000`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.config.keys import Key, Kind, Raw
from barnabas.controller.topic_decisions import PARTITIONS_MAX, check_name
from barnabas.metadata import topic_config
from barnabas.model.errors import ApiError
from barnabas.model.settings import UNLIMITED, TopicSettings

PARTITIONS = Key("topics", "partitions", "partitions", Kind.INTEGER, 1, PARTITIONS_MAX)
REPLICATION_FACTOR = Key("topics", "replication_factor", "replication_factor", Kind.INTEGER, 1, 32)
SHAPE = {key.name: key for key in (PARTITIONS, REPLICATION_FACTOR)}


class Alias(NamedTuple):
    """A Barnabas key for one of Kafka's topic configs, with a unit in its value."""

    config: str
    kind: Kind


ALIASES = {
    "cleanup_policy": Alias("cleanup.policy", Kind.TEXT),
    "compression_type": Alias("compression.type", Kind.TEXT),
    "delete_retention": Alias("delete.retention.ms", Kind.TIME),
    "file_delete_delay": Alias("file.delete.delay.ms", Kind.TIME),
    "flush": Alias("flush", Kind.TEXT),
    "fsync_interval": Alias("flush.ms", Kind.TIME),
    "index_interval": Alias("index.interval.bytes", Kind.SIZE),
    "index_size": Alias("segment.index.bytes", Kind.SIZE),
    "max_message_size": Alias("max.message.bytes", Kind.SIZE),
    "min_cleanable_dirty_ratio": Alias("min.cleanable.dirty.ratio", Kind.RATIO),
    "min_compaction_lag": Alias("min.compaction.lag.ms", Kind.TIME),
    "min_insync_replicas": Alias("min.insync.replicas", Kind.INTEGER),
    "retention_size": Alias("retention.bytes", Kind.SIZE),
    "retention_time": Alias("retention.ms", Kind.TIME),
    "segment_size": Alias("segment.bytes", Kind.SIZE),
    "segment_time": Alias("segment.ms", Kind.TIME),
    "unclean_leader_election": Alias("unclean.leader.election.enable", Kind.BOOLEAN),
}

KNOWN = (*SHAPE, *ALIASES, *topic_config.DEFINITIONS)


@dataclass(slots=True)
class TopicDraft:
    """A topic under construction, while its entries are read."""

    name: str
    """The name of the topic."""

    shape: dict[str, int] = field(default_factory=dict)
    """Its partitions and replication factor, if given."""

    config: dict[str, str] = field(default_factory=dict)
    """Its configs, under Kafka's names."""

    def take(self, key: str, raw: Raw) -> None:
        """Add one key, or raise ValueError with what to write instead."""
        if key in SHAPE:
            value = SHAPE[key].read(raw)
            assert isinstance(value, int)
            self.shape[key] = value
            return
        alias = ALIASES.get(key)
        config = alias.config if alias else key
        if config in self.config:
            raise ValueError(f"{config} is set twice for this topic; remove one of the two")
        value_text = _written(key, alias, raw)
        try:
            topic_config.validate(config, value_text)
        except ApiError as error:
            raise ValueError(error.message.rstrip(".")) from None
        self.config[config] = value_text

    def finish(self) -> TopicSettings:
        """Return the topic, or raise ValueError if its configs are inconsistent."""
        try:
            topic_config.resolve(self.config)
        except ApiError as error:
            raise ValueError(error.message.rstrip(".")) from None
        return TopicSettings(
            name=self.name,
            partitions=self.shape.get(PARTITIONS.name),
            replication_factor=self.shape.get(REPLICATION_FACTOR.name),
            config=self.config,
        )


def begin(name: str) -> TopicDraft:
    """Return a draft, or raise ValueError if the topic name is invalid."""
    try:
        check_name(name)
    except ApiError as error:
        raise ValueError(error.message) from None
    return TopicDraft(name)


def _written(key: str, alias: Alias | None, raw: Raw) -> str:
    if isinstance(raw, tuple):
        return ",".join(raw)
    if alias is None:
        return raw or ""
    value = Key("topics", key, key, alias.kind, UNLIMITED).read(raw)
    return str(value).lower() if isinstance(value, bool) else str(value)
