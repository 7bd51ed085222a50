"""DescribeConfigs (key 32), versions 1 to 4, for topics and brokers, with source and synonyms.

The sources of a value, nearest first: the topic, the dynamic configs of this broker, those of all
brokers, the broker's settings, the built-in default. A topic that still lacks replicas has one
entry that Kafka does not have, `barnabas.replication.factor`. Roles, subscriptions to clients'
metrics and groups are described as well (`role_configs.py`, `client_metrics_configs.py`,
`group_configs.py`).
"""

from collections.abc import Callable, Iterator

from barnabas.controller.configs import DynamicSource, altered_names, dynamic_values
from barnabas.controller.topic_decisions import check_name
from barnabas.handlers.admin import client_metrics_configs, group_configs, role_configs
from barnabas.handlers.admin.config_resources import (
    CLIENT_METRICS,
    GROUP,
    ROLE,
    check_broker,
    require_description,
    resource_type,
)
from barnabas.handlers.answers import in_steps
from barnabas.handlers.context import RequestContext
from barnabas.metadata import broker_config, topic_config
from barnabas.metadata.config_definition import ConfigDefinition, ConfigType
from barnabas.metadata.image import TopicImage
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps, Work
from barnabas.node.node import Node
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

AT_ONCE_MAX = 10
"""How many topics and brokers are described without steps."""
UNITS = 500
"""The cost of describing one of them."""
TOPIC_SOURCE = 1
BROKER_SOURCE = 2
ALL_BROKERS_SOURCE = 3
SETTINGS_SOURCE = 4
DEFAULT_SOURCE = 5

_DYNAMIC_SOURCES = {
    DynamicSource.BROKER: BROKER_SOURCE,
    DynamicSource.ALL_BROKERS: ALL_BROKERS_SOURCE,
}


def handle(
    node: Node, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse | Pending[DescribeConfigsResponse]:
    """Describe each resource by itself; many of them in several events."""
    if len(request.resources) <= AT_ONCE_MAX:
        described = [_one(node, r, request, context) for r in request.resources]
        return DescribeConfigsResponse(results=described)
    return in_steps(node, _many(node, request, context), context)


def _many(
    node: Node, request: DescribeConfigsRequest, context: RequestContext
) -> Steps[DescribeConfigsResponse]:
    encode = encoder(DescribeConfigsResult, context.version)
    work, results = Work(), Encoded()
    for resource in request.resources:
        results.append(encode(_one(node, resource, request, context)))
        if work.spend(UNITS):
            yield None
    return DescribeConfigsResponse(results=results)


def _one(
    node: Node,
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    context: RequestContext,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        require_description(node, context, resource.resource_type, resource.resource_name)
        wanted = resource.configuration_keys  # as in Kafka, no names mean all configs
        described = list(_describe(node, resource, lambda name: not wanted or name in wanted))
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    for entry in described:
        if not request.include_synonyms:
            entry.synonyms = []
        if not request.include_documentation:
            entry.documentation = None
        result.configs.append(entry)
    return result


def _describe(
    node: Node, resource: DescribeConfigsResource, is_wanted: Callable[[str], bool]
) -> Iterator[DescribeConfigsResourceResult]:
    if resource.resource_type == ROLE:
        return role_configs.describe(node, resource.resource_name)
    if resource.resource_type == CLIENT_METRICS:
        return client_metrics_configs.describe(node, resource.resource_name, is_wanted)
    if resource.resource_type == GROUP:
        return group_configs.describe(node, resource.resource_name, is_wanted)
    if resource_type(resource.resource_type) == "topic":
        topic = node.image.topics.get(resource.resource_name)
        if topic is None:
            check_name(resource.resource_name)
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {resource.resource_name!r}",
            )
        return _topic(node, topic, is_wanted)
    check_broker(node, resource.resource_name)
    described = _broker(node, resource.resource_name)
    return (entry for entry in described if is_wanted(entry.name))


def _topic(
    node: Node, topic: TopicImage, is_wanted: Callable[[str], bool]
) -> Iterator[DescribeConfigsResourceResult]:
    settings = node.static_defaults
    for name, known in topic_config.DEFINITIONS.items():
        if not is_wanted(name):
            continue
        synonyms = []
        if name in topic.config:
            synonyms.append(_synonym(name, topic.config[name], TOPIC_SOURCE))
        synonyms += _inherited(node, known, settings.get(name, known.default))
        yield DescribeConfigsResourceResult(
            name=name,
            value=synonyms[0].value,
            config_source=synonyms[0].source,
            synonyms=synonyms,
            config_type=known.type,
            documentation=known.documentation,
        )
    if topic.replication_factor and is_wanted(WANTED_FACTOR):
        yield _wanted_factor(topic.replication_factor)


def _wanted_factor(replicas: int) -> DescribeConfigsResourceResult:
    """Return the replication factor that a topic grows to, as a config that cannot be altered."""
    return DescribeConfigsResourceResult(
        name=WANTED_FACTOR,
        value=str(replicas),
        read_only=True,
        config_source=SETTINGS_SOURCE,
        synonyms=[_synonym(WANTED_FACTOR, str(replicas), SETTINGS_SOURCE)],
        config_type=ConfigType.INT,
        documentation=(
            "How many replicas the topic is to have. It was made while brokers were down; the "
            "controller adds the missing replicas when they are back."
        ),
    )


def _broker(node: Node, name: str) -> Iterator[DescribeConfigsResourceResult]:
    described = broker_config.describe(node.settings)
    for entry in described:
        source = DEFAULT_SOURCE if entry.is_default else SETTINGS_SOURCE
        synonyms = _altered(node, entry.name)
        synonyms.append(_synonym(entry.name, entry.value, source))
        if name == "" and synonyms[0].source != ALL_BROKERS_SOURCE:
            continue  # all brokers together have only dynamic configs
        yield DescribeConfigsResourceResult(
            name=entry.name,
            value=synonyms[0].value,
            read_only=entry.read_only,
            config_source=synonyms[0].source,
            synonyms=synonyms,
            config_type=entry.type,
            documentation=entry.documentation,
        )
    names = {entry.name for entry in described}
    for altered in altered_names(node.image, node.node_id):
        if altered not in names:
            yield from _kept(node, name, altered)


def _kept(node: Node, broker: str, name: str) -> Iterator[DescribeConfigsResourceResult]:
    """Describe a config that exists only because it was altered."""
    known = broker_config.dynamic(name)
    sensitive = known is None or known.type is ConfigType.PASSWORD
    synonyms = _altered(node, name)
    if broker == "":
        synonyms = [synonym for synonym in synonyms if synonym.source == ALL_BROKERS_SOURCE]
    if not synonyms:
        return
    if sensitive:
        for synonym in synonyms:
            synonym.value = None
    yield DescribeConfigsResourceResult(
        name=name,
        value=synonyms[0].value,
        read_only=known is None,
        config_source=synonyms[0].source,
        is_sensitive=sensitive,
        synonyms=synonyms,
        config_type=ConfigType.STRING if known is None else known.type,
        documentation="Not known to this release." if known is None else known.documentation,
    )


def _altered(node: Node, name: str) -> list[DescribeConfigsSynonym]:
    """Return the dynamic values of a broker config, nearest first."""
    values = dynamic_values(node.image, node.node_id, name)
    return [_synonym(name, value, _DYNAMIC_SOURCES[source]) for source, value in reversed(values)]


def _inherited(
    node: Node, known: ConfigDefinition, settings_value: str
) -> list[DescribeConfigsSynonym]:
    """Return the values that a topic would inherit, nearest first."""
    broker_name = known.synonyms[0] if known.synonyms else known.name
    found = _altered(node, broker_name)
    if settings_value != known.default:
        found.append(_synonym(broker_name, settings_value, SETTINGS_SOURCE))
    found.append(_synonym(broker_name, known.default, DEFAULT_SOURCE))
    return found


def _synonym(name: str, value: str, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)
