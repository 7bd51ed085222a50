"""The rows of the APIs by which clients push their metrics."""

from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.telemetry import get_telemetry_subscriptions, push_telemetry
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

TELEMETRY_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        0,
        0,
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
        get_telemetry_subscriptions.handle,
        needs=(),
    ),
    Api(
        ApiKey.PUSH_TELEMETRY,
        0,
        0,
        PushTelemetryRequest,
        PushTelemetryResponse,
        push_telemetry.handle,
        needs=(),
    ),
)
