"""Query and change topics and configs; return plain values instead of confluent-kafka's futures."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from barnabas.admin.admin_errors import AdminError, kafka_sentence, no_topic
from barnabas.admin.connecting import metadata, open_admin

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

REQUEST_TIMEOUT_S = 30.0
BROKER_DEFAULT = -1
KINDS = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition; offsets are None if no leader answers."""

    id: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    earliest: int | None
    latest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic with its partitions and its non-default configs."""

    name: str
    topic_id: str
    partitions: list[Partition]
    configs: list["Config"]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config and the source of its value."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        """Whether it has its default value."""
        return self.source == "default"


class Cluster:
    """An open admin client."""

    def __init__(self, bootstrap: str, properties: list[str] | None) -> None:
        self._bootstrap = bootstrap
        self._admin = open_admin(bootstrap, properties)

    def topics(self) -> dict[str, tuple[int, int]]:
        """Return the number of partitions and replicas of each topic."""
        found = metadata(self._admin, self._bootstrap).topics
        return {
            name: (len(topic.partitions), _replicas(topic.partitions.values()))
            for name, topic in sorted(found.items())
        }

    def describe(self, name: str) -> Topic:
        """Return a topic with its partitions, offsets and configs."""
        if name not in self.topics():
            raise no_topic(name)
        described = self._admin.describe_topics(
            TopicCollection([name]), request_timeout=REQUEST_TIMEOUT_S
        )[name]
        topic = _result(described)
        earliest, latest = (
            self._offsets(name, topic.partitions, spec)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        partitions = [
            Partition(
                id=each.id,
                leader=each.leader.id if each.leader else None,
                replicas=[node.id for node in each.replicas],
                isr=[node.id for node in each.isr],
                earliest=earliest.get(each.id),
                latest=latest.get(each.id),
            )
            for each in topic.partitions
        ]
        configs = [each for each in self.configs("topic", name) if not each.is_default]
        return Topic(
            name=name, topic_id=str(topic.topic_id), partitions=partitions, configs=configs
        )

    def create(
        self, name: str, *, partitions: int | None, replicas: int | None, config: Mapping[str, str]
    ) -> None:
        """Create a topic; None means the broker's default."""
        topic = NewTopic(
            name,
            num_partitions=partitions or BROKER_DEFAULT,
            replication_factor=replicas or BROKER_DEFAULT,
            config=dict(config),
        )
        _result(self._admin.create_topics([topic], request_timeout=REQUEST_TIMEOUT_S)[name])

    def delete(self, name: str) -> None:
        """Delete a topic with all its records."""
        _result(self._admin.delete_topics([name], request_timeout=REQUEST_TIMEOUT_S)[name])

    def grow(self, name: str, partitions: int) -> None:
        """Increase the number of partitions of a topic to a total."""
        request = [NewPartitions(name, partitions)]
        _result(self._admin.create_partitions(request, request_timeout=REQUEST_TIMEOUT_S)[name])

    def configs(self, kind: str, name: str) -> list[Config]:
        """Return all configs of a topic or broker."""
        resource = ConfigResource(KINDS[kind], name)
        topic = name if kind == "topic" else None
        answer = self._admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
        return [_config(entry) for _, entry in sorted(_result(answer[resource], topic).items())]

    def change(self, kind: str, name: str, values: Mapping[str, str], unset: Iterable[str]) -> None:
        """Set some configs and reset others to their defaults, all or none."""
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in values.items()
        ] + [ConfigEntry(key, "", incremental_operation=AlterConfigOpType.DELETE) for key in unset]
        resource = ConfigResource(KINDS[kind], name, incremental_configs=entries)
        request = self._admin.incremental_alter_configs
        topic = name if kind == "topic" else None
        _result(request([resource], request_timeout=REQUEST_TIMEOUT_S)[resource], topic)

    def _offsets(
        self, topic: str, partitions: Iterable[object], spec: OffsetSpec
    ) -> dict[int, int]:
        wanted = {
            TopicPartition(topic, each.id): spec  # type: ignore[attr-defined]
            for each in partitions
            if each.leader  # type: ignore[attr-defined]
        }
        answers = self._admin.list_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S)
        found = {}
        for place, future in answers.items():
            try:
                found[place.partition] = int(future.result().offset)
            except KafkaException:  # a partition without a leader must not hide the others
                continue
        return found


def is_error(error: Exception, code: int) -> bool:
    """Return whether a broker answered with this code."""
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == code


TOPIC_EXISTS = KafkaError.TOPIC_ALREADY_EXISTS


def _result(future: "Future[T]", topic: str | None = None) -> T:
    try:
        return future.result()
    except KafkaException as error:
        if topic is not None and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise no_topic(topic) from error
        raise AdminError(kafka_sentence(error.args[0])) from error


def _replicas(partitions: Iterable[object]) -> int:
    return max((len(each.replicas) for each in partitions), default=0)  # type: ignore[attr-defined]


def _config(entry: ConfigEntry) -> Config:
    source = ConfigSource(entry.source).name.removesuffix("_CONFIG").lower().replace("_", " ")
    return Config(
        name=entry.name,
        value=None if entry.is_sensitive else entry.value,
        source=source,
        read_only=bool(entry.is_read_only),
        sensitive=bool(entry.is_sensitive),
    )
