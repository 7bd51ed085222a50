"""DescribeConfigs (key 32), versions 1 to 4, for topics and brokers, with source and synonyms.

Where a value comes from, nearest first: the topic, what was altered on this broker, what was
altered on all brokers, the broker's settings, the built-in default.
"""

from collections.abc import Iterator

from barnabas.controller.configs import DynamicSource, dynamic_values
from barnabas.controller.topics import check_name
from barnabas.handlers.config_resources import check_broker, resource_type
from barnabas.handlers.context import RequestContext
from barnabas.metadata import broker_config, topic_config
from barnabas.metadata.config_definition import ConfigDefinition
from barnabas.metadata.image import TopicImage
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

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
) -> DescribeConfigsResponse:
    """Describe each resource by itself."""
    del context
    return DescribeConfigsResponse(results=[_one(node, r, request) for r in request.resources])


def _one(
    node: Node, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        described = _describe(node, resource)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    wanted = resource.configuration_keys
    for entry in described:
        if wanted and entry.name not in wanted:  # as in Kafka, none named is all
            continue
        if not request.include_synonyms:
            entry.synonyms = []
        if not request.include_documentation:
            entry.documentation = None
        result.configs.append(entry)
    return result


def _describe(
    node: Node, resource: DescribeConfigsResource
) -> Iterator[DescribeConfigsResourceResult]:
    if resource_type(resource.resource_type) == "topic":
        topic = node.image.topics.get(resource.resource_name)
        if topic is None:
            check_name(resource.resource_name)
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {resource.resource_name!r}",
            )
        return _topic(node, topic)
    check_broker(node, resource.resource_name)
    return _broker(node, resource.resource_name)


def _topic(node: Node, topic: TopicImage) -> Iterator[DescribeConfigsResourceResult]:
    settings = topic_config.defaults_from(node.settings)
    for name, known in topic_config.DEFINITIONS.items():
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


def _broker(node: Node, name: str) -> Iterator[DescribeConfigsResourceResult]:
    for entry in broker_config.describe(node.settings):
        source = DEFAULT_SOURCE if entry.is_default else SETTINGS_SOURCE
        synonyms = [_synonym(entry.name, entry.value, source)]
        for altered, value in dynamic_values(node.image, node.node_id, entry.name):
            synonyms.insert(0, _synonym(entry.name, value, _DYNAMIC_SOURCES[altered]))
        if name == "" and synonyms[0].source != ALL_BROKERS_SOURCE:
            continue  # of all brokers together only what was altered is known
        yield DescribeConfigsResourceResult(
            name=entry.name,
            value=synonyms[0].value,
            read_only=entry.read_only,
            config_source=synonyms[0].source,
            synonyms=synonyms,
            config_type=entry.type,
            documentation=entry.documentation,
        )


def _inherited(
    node: Node, known: ConfigDefinition, settings_value: str
) -> list[DescribeConfigsSynonym]:
    """Return what a topic would have without a setting of its own, nearest first."""
    found: list[DescribeConfigsSynonym] = []
    broker_name = known.synonyms[0] if known.synonyms else known.name
    for source, value in dynamic_values(node.image, node.node_id, broker_name):
        found.insert(0, _synonym(broker_name, value, _DYNAMIC_SOURCES[source]))
    if settings_value != known.default:
        found.append(_synonym(broker_name, settings_value, SETTINGS_SOURCE))
    found.append(_synonym(broker_name, known.default, DEFAULT_SOURCE))
    return found


def _synonym(name: str, value: str, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)
