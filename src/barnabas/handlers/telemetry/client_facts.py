"""What a broker knows about the client of a request, for the selectors of subscriptions."""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.client_metrics_topic import ClientMetrics
from barnabas.node.node import Node


def facts_of(context: RequestContext) -> dict[str, str]:
    """Return the selectable properties of a client, but for its instance id."""
    name, version = context.caller.remembered.software
    return {
        "client_id": context.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": context.caller.host,
    }


def client_metrics_of(node: Node) -> ClientMetrics:
    """Return what takes metrics of clients, or raise where the broker does not take them."""
    if node.client_metrics is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "observability.client_metrics is off")
    return node.client_metrics
