"""Create, grow, trim and delete topics, and read and change configs, over our own connections.

Other than `topic_admin`, these can check a change without making it (`validate_only`), and return
the defaults and the documentation of configs. Errors carry the broker's own sentence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from barnabas.admin.admin_errors import no_topic
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.wire.cluster_wire import Node, Wire, require, settled
from barnabas.wire.wire_failures import RefusedError

TOPIC, BROKER = 2, 4
"""Kinds of resources with configs."""
SET, DELETE = 0, 1
TIMEOUT_MS = 30_000
BROKER_DEFAULT = -1
SOURCES = {
    1: "topic",
    2: "dynamic broker",
    3: "dynamic default broker",
    4: "static broker",
    5: "default",
    6: "dynamic broker logger",
    7: "client metrics",
    8: "group",
}
TYPES = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
OWN_SOURCES = ("topic", "dynamic broker", "dynamic default broker", "static broker", "group")


Ask = Callable[[], tuple[int, str | None]]
"""Sends a request; returns the error code and the broker's sentence."""


class TopicRefusedError(RefusedError):
    """A broker refused a change of a topic, with a sentence of its own."""

    def __init__(self, what: str, code: int, message: str | None) -> None:
        super().__init__(what, code, message or _code_name(code))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow:
    """One config of a topic or broker."""

    name: str
    value: str | None
    default: str | None
    source: str
    is_default: bool
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None
    type: str | None

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return asdict(self)


def topic_metadata(wire: Wire, name: str) -> MetadataResponseTopic:
    """Return a topic's metadata without creating it; raise if there is no such topic."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (found,) = wire.ask_any(request, MetadataResponse).topics
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise no_topic(name)
    _require(found.error_code, f"Topic {name}", None)
    return found


def create_topic(
    wire: Wire,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, str],
    validate_only: bool,
) -> None:
    """Create a topic, or only check that it can be; None means the broker's default."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions or BROKER_DEFAULT,
        replication_factor=replication_factor or BROKER_DEFAULT,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only
    )

    def ask() -> tuple[int, str | None]:
        (result,) = wire.ask_any(request, CreateTopicsResponse).topics
        return result.error_code, result.error_message

    _settle(ask, f"Topic {name} was not created")


def add_partitions(wire: Wire, name: str, count: int, *, validate_only: bool) -> None:
    """Increase the number of partitions to a total, or only check that it can be."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=TIMEOUT_MS,
        validate_only=validate_only,
    )

    def ask() -> tuple[int, str | None]:
        (result,) = wire.ask_any(request, CreatePartitionsResponse).results
        return result.error_code, result.error_message

    _settle(ask, f"Topic {name} got no partitions")


def delete_topic(wire: Wire, name: str) -> None:
    """Delete a topic with all its records."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=bytes(16))],
        topic_names=[name],
        timeout_ms=TIMEOUT_MS,
    )

    def ask() -> tuple[int, str | None]:
        (result,) = wire.ask_any(request, DeleteTopicsResponse).responses
        return result.error_code, result.error_message

    _settle(ask, f"Topic {name} was not deleted")


def describe_configs(
    wire: Wire, kind: int, name: str, keys: Sequence[str] | None = None
) -> list[ConfigRow]:
    """Return the configs of a topic or broker, those that differ from their default first."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
        ],
        include_synonyms=True,
        include_documentation=True,
    )
    node = _node(wire, name) if kind == BROKER else None
    answer = (
        wire.ask_any(request, DescribeConfigsResponse)
        if node is None
        else wire.ask(node, request, DescribeConfigsResponse)
    )
    (result,) = answer.results
    _require(result.error_code, f"The configs of {name} cannot be read", result.error_message)
    rows = [_config_row(each, kind) for each in result.configs]
    return sorted(rows, key=lambda row: (row.is_default, row.name))


def change_topic_configs(
    wire: Wire,
    name: str,
    values: Mapping[str, str],
    removed: Iterable[str],
    *,
    validate_only: bool,
) -> None:
    """Set some configs of a topic and reset others, all or none, or only check them."""
    changes = [
        AlterableConfig(name=key, config_operation=SET, value=value)
        for key, value in values.items()
    ] + [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in removed]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=changes)],
        validate_only=validate_only,
    )

    def ask() -> tuple[int, str | None]:
        (result,) = wire.ask_any(request, IncrementalAlterConfigsResponse).responses
        return result.error_code, result.error_message

    _settle(ask, f"The configs of topic {name} were not changed")


def trim(wire: Wire, name: str, before: Mapping[int, int]) -> dict[int, int]:
    """Delete the records before offsets; return the new first offset of each partition."""
    leaders = leaders_of(wire, name)
    by_leader: dict[Node, list[DeleteRecordsPartition]] = {}
    for partition, offset in before.items():
        leader = leaders.get(partition)
        if leader is None:
            raise RefusedError(
                f"{name}-{partition} has no leader; start its broker",
                ErrorCode.LEADER_NOT_AVAILABLE,
                "no leader",
            )
        wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
        by_leader.setdefault(leader, []).append(wanted)
    found: dict[int, int] = {}
    for node, partitions in by_leader.items():
        topics = [DeleteRecordsTopic(name=name, partitions=partitions)]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
        (answer,) = wire.ask(node, request, DeleteRecordsResponse).topics
        for each in answer.partitions:
            require(each.error_code, f"{name}-{each.partition_index} was not trimmed")
            found[each.partition_index] = each.low_watermark
    return found


def leaders_of(wire: Wire, name: str) -> dict[int, Node | None]:
    """Return the leader of each partition of a topic; None where there is none now."""
    nodes = {node.id: node for node in wire.nodes()}
    return {
        each.partition_index: nodes.get(each.leader_id)
        for each in topic_metadata(wire, name).partitions
    }


def _config_row(found: DescribeConfigsResourceResult, kind: int) -> ConfigRow:
    source = SOURCES.get(found.config_source, "unknown")
    own = "topic" if kind == TOPIC else "dynamic broker"
    # The synonyms come in the order in which they count. What is below the value set here is what
    # the config would be without it.
    below = [each for each in found.synonyms if SOURCES.get(each.source) != own]
    default = below[0].value if below else None
    is_default = source != own if kind == TOPIC else source not in OWN_SOURCES
    hidden = found.is_sensitive
    return ConfigRow(
        name=found.name,
        value=None if hidden else found.value,
        default=None if hidden else found.value if is_default and default is None else default,
        source=source,
        is_default=is_default,
        is_sensitive=hidden,
        is_read_only=found.read_only,
        documentation=found.documentation,
        type=TYPES.get(found.config_type),
    )


def _node(wire: Wire, name: str) -> Node | None:
    return next((node for node in wire.nodes() if str(node.id) == name), None)


def _settle(ask: Ask, what: str) -> None:
    """Ask until the code is none that passes by itself; raise with the broker's sentence."""
    said: list[str | None] = [None]

    def asked() -> tuple[int, None]:
        code, said[0] = ask()
        return code, None

    try:
        settled(asked, what)
    except RefusedError as error:
        raise TopicRefusedError(what, error.code, said[0]) from None


def _require(code: int, what: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise TopicRefusedError(what, code, message)


def _code_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
