"""PushTelemetry (key 72), version 0: a client's metrics, which go to a topic undecoded.

A push is answered before its record is on the disks: the next one has newer values.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.telemetry.client_facts import client_metrics_of, facts_of
from barnabas.model.errors import ApiError
from barnabas.node.client_telemetry import Push
from barnabas.node.node import Node
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(
    node: Node, request: PushTelemetryRequest, context: RequestContext
) -> PushTelemetryResponse:
    """Accept metrics."""
    facts, metrics = facts_of(context), bytes(request.metrics)
    push = Push(
        request.subscription_id, request.compression_type, len(metrics), request.terminating
    )
    try:
        taking = client_metrics_of(node)
        granted = taking.clients.push(request.client_instance_id, facts, push, node.timers.now_ms)
    except ApiError as error:
        return PushTelemetryResponse(error_code=error.code)
    if metrics:
        taking.topic.append(granted, facts, push, metrics)
    return PushTelemetryResponse()
