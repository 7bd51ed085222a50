"""ListConfigResources (key 74), versions 0 and 1: the names of what has configs (KIP-1142).

Version 0 asks for client metrics, of which there are none here. From version 1 on types are named;
none named is all. Groups and the loggers of brokers have no configs here, so none is listed.
"""

from collections.abc import Iterator

from barnabas.handlers.admin.config_resources import BROKER, TOPIC
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
KNOWN = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
TYPES_FROM = 1


def handle(
    node: Node, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """Name the topics and brokers, or those of the types asked for."""
    if context.version < TYPES_FROM:
        return ListConfigResourcesResponse()
    wanted = request.resource_types or KNOWN
    if any(kind not in KNOWN for kind in wanted):
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
    elif kind == BROKER:
        yield from map(str, sorted(node.image.brokers))
