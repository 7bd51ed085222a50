"""ListConfigResources (key 74), versions 0 and 1: the resources that have configs (KIP-1142).

Version 0 asks for subscriptions to metrics of clients. From version 1 on a request names types;
without any it asks for all types of Kafka. The loggers of brokers have no configs here, so they are
not listed. Of groups, those with configs of their own are listed, as in Kafka. Roles are listed if
the request names their type.
"""

from collections.abc import Iterator, Sequence

from barnabas.handlers.admin.config_resources import BROKER, CLIENT_METRICS, GROUP, ROLE, TOPIC
from barnabas.handlers.authorization import DESCRIBE_CONFIGS_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

BROKER_LOGGER = 8
KNOWN = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
TYPES_FROM = 1


def handle(
    node: Node, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """Name the topics and brokers, or those of the types asked for."""
    if is_denied(node, context, DESCRIBE_CONFIGS_CLUSTER):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: Sequence[int] = request.resource_types or KNOWN
    if context.version < TYPES_FROM:
        wanted = (CLIENT_METRICS,)
    if any(kind not in (*KNOWN, ROLE) for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in dict.fromkeys(wanted)
        for name in _names(node, kind)
    ]
    return ListConfigResourcesResponse(config_resources=found)


def _names(node: Node, kind: int) -> Iterator[str]:
    if kind == TOPIC:
        yield from node.image.topics
    elif kind == CLIENT_METRICS:
        yield from node.image.client_metrics
    elif kind == GROUP:
        yield from node.image.group_configs
    elif kind == ROLE:
        yield from node.image.security.roles
    elif kind == BROKER:
        yield from map(str, sorted(node.image.brokers))
