"""The metrics of requests, fsyncs and client ids."""

from collections.abc import Iterable, Sequence

from barnabas.model.errors import ErrorCode
from barnabas.protocol.api_keys import ApiKey
from barnabas.server.metrics import metric_families as metrics
from barnabas.server.metrics.broker_meters import UNKNOWN, BrokerMeters
from barnabas.server.metrics.exposition_text import Texts, Writer
from barnabas.server.metrics.histogram import Histogram
from barnabas.server.metrics.metered_server import MeteredServer

QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999)
US_PER_MS = 1_000
OPERATIONS = {
    "Fetch": (ApiKey.FETCH,),
    "Heartbeat": (ApiKey.HEARTBEAT,),
    "Produce": (ApiKey.PRODUCE,),
    "Rebalance": (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP),
}
"""Kafka's names for requests that wait, and their APIs."""


def request_texts(writer: Writer, server: MeteredServer) -> Texts:
    """Write the metrics of requests, fsyncs and client ids."""
    meters = server.meters
    meters.take_syncs()
    yield from _requests(writer, meters)
    yield from writer.one(metrics.HANDLER_IDLE, server.idle)
    yield from writer.one(metrics.NETWORK_IDLE, server.idle)
    waiting = (
        ([name], sum(meters.waiting[int(key)] for key in keys)) for name, keys in OPERATIONS.items()
    )
    yield from writer.labelled(metrics.PURGATORY, waiting)
    yield from writer.labelled(metrics.SOFTWARE, sorted(meters.software.items()))
    yield from _syncs(writer, meters)
    yield from _clients(writer, meters)


def _requests(writer: Writer, meters: BrokerMeters) -> Texts:
    apis = meters.apis
    yield writer.head(metrics.REQUEST_TIME)
    start = writer.start(metrics.REQUEST_TIME)
    for api in apis:
        for quantile, value_us in _quantiles(api.latency):
            labels = f'request="{api.name}",quantile="{quantile}"'
            yield f"{start}{{{labels}}} {value_us / US_PER_MS:g}\n"
    by_version = (
        ([api.name, "unknown" if version == UNKNOWN else str(version)], count)
        for api in apis
        for version, count in sorted(api.versions.items())
    )
    yield from writer.labelled(metrics.REQUESTS, by_version)
    errors = (
        ([name, _error_name(code)], count) for (name, code), count in sorted(meters.errors.items())
    )
    yield from writer.labelled(metrics.ERRORS, errors)
    latencies = {api.name: api.latency for api in apis}
    yield from writer.histograms(metrics.REQUEST_SECONDS, latencies)


def _quantiles(histogram: Histogram) -> Iterable[tuple[float, float]]:
    found = histogram.quantiles(QUANTILES)
    return () if found is None else zip(QUANTILES, found, strict=True)


def _error_name(code: int) -> str:
    known = code in ErrorCode._value2member_map_
    return ErrorCode(code).name if known else str(code)


def _syncs(writer: Writer, meters: BrokerMeters) -> Texts:
    times: Sequence[tuple[list[str], float]] = [
        ([str(quantile)], value_us / US_PER_MS) for quantile, value_us in _quantiles(meters.sync_us)
    ]
    yield from writer.labelled(metrics.FLUSH_TIME, times)
    yield from writer.one(metrics.FLUSH_COUNT, meters.sync_us.count)
    yield from writer.histograms(metrics.SYNC_SECONDS, {"": meters.sync_us})
    yield from writer.histograms(metrics.SYNC_APPENDS, {"": meters.sync_appends}, scale=1)


def _clients(writer: Writer, meters: BrokerMeters) -> Texts:
    busiest = list(meters.clients.busiest())
    for throttle, rate, is_fetch in (
        (metrics.PRODUCE_THROTTLE, metrics.PRODUCE_RATE, False),
        (metrics.FETCH_THROTTLE, metrics.FETCH_RATE, True),
    ):
        flows = [
            (client_id, client.fetched if is_fetch else client.produced)
            for client_id, client in busiest
        ]
        yield from writer.labelled(
            throttle, (([client_id], flow.throttle_time_ms) for client_id, flow in flows)
        )
        yield from writer.labelled(rate, (([client_id], flow.rate) for client_id, flow in flows))
