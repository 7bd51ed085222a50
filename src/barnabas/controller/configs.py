"""Decides on changes to the configs of topics, brokers, groups and other resources."""

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from barnabas.controller.topic_decisions import check_name
from barnabas.metadata import (
    broker_config,
    client_metrics_config,
    share_group_config,
    topic_config,
)
from barnabas.metadata.client_metrics_config import KIND as CLIENT_METRICS
from barnabas.metadata.config_definition import ConfigType
from barnabas.metadata.features import CLIENT_METRICS_LEVEL, SHARE_LEVEL
from barnabas.metadata.image import (
    ALL_BROKERS,
    BROKER,
    TOPIC,
    Image,
    TopicImage,
)
from barnabas.metadata.metadata_records import ConfigChanged
from barnabas.metadata.share_group_config import KIND as GROUP
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import ShareSettings

CLIENT_METRICS_NAME_MAX = 249


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One change in a request to alter configs."""

    name: str
    operation: Operation
    value: str | None


def _topic(image: Image, name: str) -> TopicImage:
    if not name:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "name the topic; there are no configs for all topics at once"
        )
    topic = image.topics.get(name)
    if topic is None:
        check_name(name)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def alter_topic(
    image: Image, name: str, changes: Sequence[Change], defaults: Mapping[str, str]
) -> ConfigChanged:
    """Return the record that changes a topic's configs."""
    topic = _topic(image, name)
    wanted: dict[str, str | None] = {}
    for change in _each_once(changes):
        if change.operation is Operation.DELETE:
            wanted[change.name] = None  # Kafka accepts this for unknown configs as well
            continue
        known = topic_config.definition(change.name)
        present = topic.config.get(change.name, defaults.get(change.name, known.default))
        wanted[change.name] = _apply(change, present, is_list=known.type is ConfigType.LIST)
    merged = {**topic.config, **{k: v for k, v in wanted.items() if v is not None}}
    kept = {key: value for key, value in merged.items() if wanted.get(key, value) is not None}
    topic_config.resolve(kept, defaults)
    return ConfigChanged(kind=TOPIC, name=name, changes=wanted)


def replace_topic(
    image: Image, name: str, config: Mapping[str, str], defaults: Mapping[str, str]
) -> ConfigChanged:
    """Return the record that leaves a topic with exactly these configs (AlterConfigs)."""
    topic = _topic(image, name)
    topic_config.resolve(config, defaults)
    gone: dict[str, str | None] = {key: None for key in topic.config if key not in config}
    return ConfigChanged(kind=TOPIC, name=name, changes={**gone, **config})


def alter_broker(image: Image, name: str, changes: Sequence[Change]) -> ConfigChanged:
    """Return the record that changes a broker's dynamic configs, or every broker's."""
    present = image.broker_configs.get(name, {})
    wanted: dict[str, str | None] = {}
    for change in _each_once(changes):
        known = broker_config.dynamic(change.name)
        default = "" if known is None else known.default
        is_list = known is not None and known.type is ConfigType.LIST
        value = _apply(change, present.get(change.name, default), is_list=is_list)
        if value is not None:
            broker_config.validate_broker(change.name, value, of_all=name == ALL_BROKERS)
        wanted[change.name] = value
    return ConfigChanged(kind=BROKER, name=name, changes=wanted)


def replace_broker(image: Image, name: str, config: Mapping[str, str]) -> ConfigChanged:
    """Return the record that leaves a broker with exactly these dynamic configs."""
    for key, value in config.items():
        broker_config.validate_broker(key, value, of_all=name == ALL_BROKERS)
    present = image.broker_configs.get(name, {})
    gone: dict[str, str | None] = {key: None for key in present if key not in config}
    return ConfigChanged(kind=BROKER, name=name, changes={**gone, **config})


def alter_client_metrics(image: Image, name: str, changes: Sequence[Change]) -> ConfigChanged:
    """Return the record that changes a subscription to clients' metrics."""
    _check_client_metrics(image, name)
    present = image.client_metrics.get(name, {})
    wanted: dict[str, str | None] = {}
    for change in _each_once(changes):
        # As in Kafka, which does not know that two of these configs are lists.
        wanted[change.name] = _apply(change, present.get(change.name, ""), is_list=False)
    merged = {**present, **wanted}
    client_metrics_config.subscription({k: v for k, v in merged.items() if v is not None})
    return ConfigChanged(kind=CLIENT_METRICS, name=name, changes=wanted)


def replace_client_metrics(image: Image, name: str, config: Mapping[str, str]) -> ConfigChanged:
    """Return the record that leaves a subscription with exactly these configs (AlterConfigs)."""
    _check_client_metrics(image, name)
    client_metrics_config.subscription(config)
    present = image.client_metrics.get(name, {})
    gone: dict[str, str | None] = {key: None for key in present if key not in config}
    return ConfigChanged(kind=CLIENT_METRICS, name=name, changes={**gone, **config})


def _check_client_metrics(image: Image, name: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name the subscription to metrics of clients")
    if len(name) > CLIENT_METRICS_NAME_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"the name of a subscription has at most {CLIENT_METRICS_NAME_MAX} characters",
        )
    if image.feature_level < CLIENT_METRICS_LEVEL:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"client metrics need feature level {CLIENT_METRICS_LEVEL}, and the cluster is at "
            f"{image.feature_level}. Once every broker runs this release, run "
            "`barnabas cluster upgrade`",
        )
    is_new = name not in image.client_metrics
    if is_new and len(image.client_metrics) >= client_metrics_config.SUBSCRIPTIONS_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"there are {client_metrics_config.SUBSCRIPTIONS_MAX} subscriptions to metrics of "
            "clients; delete one first",
        )


def alter_group(
    image: Image, group_id: str, changes: Sequence[Change], settings: ShareSettings
) -> ConfigChanged:
    """Return the record that changes the configs of a group."""
    _check_group(image, group_id)
    present = image.group_configs.get(group_id, {})
    wanted: dict[str, str | None] = {}
    for change in _each_once(changes):
        wanted[change.name] = _apply(change, present.get(change.name, ""), is_list=False)
    merged = {**present, **wanted}
    share_group_config.check({k: v for k, v in merged.items() if v is not None}, settings)
    return ConfigChanged(kind=GROUP, name=group_id, changes=wanted)


def replace_group(
    image: Image, group_id: str, config: Mapping[str, str], settings: ShareSettings
) -> ConfigChanged:
    """Return the record that leaves a group with exactly these configs (AlterConfigs)."""
    _check_group(image, group_id)
    share_group_config.check(config, settings)
    present = image.group_configs.get(group_id, {})
    gone: dict[str, str | None] = {key: None for key in present if key not in config}
    return ConfigChanged(kind=GROUP, name=group_id, changes={**gone, **config})


def _check_group(image: Image, group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name the group")
    if image.feature_level < SHARE_LEVEL:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"configs of groups need feature level {SHARE_LEVEL}, and the cluster is at "
            f"{image.feature_level}. Once every broker runs this release, run "
            "`barnabas cluster upgrade`",
        )
    known = image.group_configs
    if group_id not in known and len(known) >= share_group_config.GROUPS_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{share_group_config.GROUPS_MAX} groups have configs; delete those of one first",
        )


class DynamicSource(Enum):
    """Where a dynamic config was altered."""

    BROKER = "broker"
    ALL_BROKERS = "all brokers"


def altered_defaults(image: Image, node_id: int) -> dict[str, str]:
    """Return the dynamic configs of all brokers and of this one, as topic defaults."""
    altered = {
        **image.broker_configs.get(ALL_BROKERS, {}),
        **image.broker_configs.get(str(node_id), {}),
    }
    return broker_config.inherited(altered)


def altered_names(image: Image, node_id: int) -> list[str]:
    """Return the configs that were altered for every broker or for this one, in order."""
    places = (ALL_BROKERS, str(node_id))
    return sorted({name for place in places for name in image.broker_configs.get(place, {})})


def catch_up_rate(image: Image, node_id: int, otherwise: int) -> int:
    """Return how many bytes a second a broker may fetch for out-of-sync replicas; 0 is unlimited.

    In Kafka a rate of 0 stops replication, so it becomes one byte a second here.
    """
    altered = dynamic_values(image, node_id, broker_config.CATCH_UP_RATE)
    return max(1, int(altered[-1][1])) if altered else otherwise


def dynamic_values(image: Image, node_id: int, name: str) -> list[tuple[DynamicSource, str]]:
    """Return the dynamic values of a broker config; the value for all brokers comes first."""
    places = ((DynamicSource.ALL_BROKERS, ALL_BROKERS), (DynamicSource.BROKER, str(node_id)))
    found = [(source, image.broker_configs.get(place, {}).get(name)) for source, place in places]
    return [(source, value) for source, value in found if value is not None]


def _each_once(changes: Sequence[Change]) -> Sequence[Change]:
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "the request names a config more than once")
    return changes


def _apply(change: Change, present: str, *, is_list: bool) -> str | None:
    match change.operation:
        case Operation.DELETE:
            return None
        case Operation.SET:
            if change.value is None:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, f"{change.name} has no value in the request"
                )
            return change.value
        case Operation.APPEND | Operation.SUBTRACT:
            if not is_list:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"{change.name} is not a list; set it instead of adding to it",
                )
            items = [item for item in present.split(",") if item]
            named = (change.value or "").split(",")  # the rule refuses an empty item
            if change.operation is Operation.APPEND:
                return ",".join([*items, *(item for item in named if item not in items)])
            return ",".join(item for item in items if item not in named)
