"""GetTelemetrySubscriptions (key 71), version 0: which metrics a client pushes, and how often.

It needs no permission, as in Kafka. It is advertised only with `observability.client_metrics`.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.telemetry.client_facts import client_metrics_of, facts_of
from barnabas.model.errors import ApiError
from barnabas.node.client_telemetry import BYTES_MAX, CODECS
from barnabas.node.node import Node
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    node: Node, request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """Tell a client its subscription."""
    try:
        taking = client_metrics_of(node)
        granted = taking.clients.ask(
            request.client_instance_id, facts_of(context), node.timers.now_ms
        )
    except ApiError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    if granted.metrics:
        taking.topic.prepare()
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=granted.instance_id,
        subscription_id=granted.subscription_id,
        accepted_compression_types=list(CODECS),
        push_interval_ms=granted.interval_ms,
        telemetry_max_bytes=BYTES_MAX,
        delta_temporality=True,
        requested_metrics=list(granted.metrics),
    )
