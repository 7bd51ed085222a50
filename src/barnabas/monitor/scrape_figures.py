"""Turns what brokers serve at /metrics into rates and quantiles, from one scrape to the next."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.monitor.cluster_answers import Scrape
from barnabas.monitor.states import BrokerFigures

TOPIC_METRICS = "kafka_server_brokertopicmetrics_"
RECORDS_IN = f"{TOPIC_METRICS}messagesin_total"
BYTES_IN = f"{TOPIC_METRICS}bytesin_total"
BYTES_OUT = f"{TOPIC_METRICS}bytesout_total"
LOOP_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
CONNECTIONS = "kafka_server_socket_server_metrics_connection_count"
REQUEST_BUCKETS = "barnabas_request_seconds_bucket"
BUILD_INFO = "barnabas_build_info"
USED = (RECORDS_IN, BYTES_IN, BYTES_OUT, LOOP_IDLE, CONNECTIONS, REQUEST_BUCKETS, BUILD_INFO)
"""The metrics that figures are computed from; a scrape may leave out all others."""
QUANTILE = 0.99

Buckets = dict[float, float]
"""Cumulative counts by upper bound."""


class FigureReader:
    """The last scrape of each broker, and what its difference to the one before says."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[int, Scrape]] = {}
        self.figures: Mapping[int, BrokerFigures] = {}
        """By broker."""
        self.produce_p99_s: float | None = None
        """Of all brokers together."""
        self.fetch_p99_s: float | None = None

    def add(self, at_ms: int, scrapes: Mapping[int, Scrape]) -> None:
        """Take the scrapes of one collection."""
        produced: list[Buckets] = []
        fetched: list[Buckets] = []
        figures = {}
        for broker, scrape in scrapes.items():
            before_ms, before = self._before.get(broker, (at_ms, Scrape(address=scrape.address)))
            elapsed_s = (at_ms - before_ms) / 1000
            produced.append(buckets_between(before, scrape, ("Produce",)))
            fetched.append(buckets_between(before, scrape, ("Fetch", "FetchConsumer")))
            figures[broker] = BrokerFigures(
                address=scrape.address,
                version=_label(scrape, BUILD_INFO, "version"),
                records_per_s=_rate(before, scrape, RECORDS_IN, elapsed_s),
                bytes_in_per_s=_rate(before, scrape, BYTES_IN, elapsed_s),
                bytes_out_per_s=_rate(before, scrape, BYTES_OUT, elapsed_s),
                produce_p99_s=quantile(produced[-1:], QUANTILE),
                fetch_p99_s=quantile(fetched[-1:], QUANTILE),
                loop_busy_ratio=_busy(scrape),
                connections=_connections(scrape),
                slow_requests=scrape.slow_requests,
            )
        self._before = {broker: (at_ms, scrape) for broker, scrape in scrapes.items()}
        self.figures = figures
        self.produce_p99_s = quantile(produced, QUANTILE)
        self.fetch_p99_s = quantile(fetched, QUANTILE)

    def total(self, name: str) -> float | None:
        """Return the sum of one figure over all brokers that have it."""
        found = (getattr(each, name) for each in self.figures.values())
        known: list[float] = [each for each in found if each is not None]
        return sum(known) if known else None


def quantile(found: Iterable[Buckets], share: float) -> float | None:
    """Return the upper bound below which a share of all values lies; None without values."""
    summed: Buckets = {}
    for buckets in found:
        for bound, count in buckets.items():
            summed[bound] = summed.get(bound, 0.0) + count
    ordered = sorted(summed.items())
    if not ordered or ordered[-1][1] <= 0:
        return None
    wanted = ordered[-1][1] * share
    finite = [bound for bound, _ in ordered if bound != float("inf")]
    lower, below = 0.0, 0.0
    for bound, count in ordered:
        if count >= wanted:
            if bound == float("inf"):
                return finite[-1] if finite else None
            return lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return None


def buckets_between(before: Scrape, after: Scrape, requests: Sequence[str]) -> Buckets:
    """Return the requests of some APIs between two scrapes, by their latency."""
    found = _buckets(after, requests)
    earlier = _buckets(before, requests)
    if any(count < earlier.get(bound, 0.0) for bound, count in found.items()):
        return found  # the broker restarted
    return {bound: count - earlier.get(bound, 0.0) for bound, count in found.items()}


def _buckets(scrape: Scrape, requests: Sequence[str]) -> Buckets:
    found: Buckets = {}
    for labels, value in scrape.samples.get(REQUEST_BUCKETS, ()):
        if labels.get("request") in requests and "le" in labels:
            bound = float(labels["le"])
            found[bound] = found.get(bound, 0.0) + value
    return found


def _rate(before: Scrape, after: Scrape, name: str, elapsed_s: float) -> float | None:
    earlier, later = _untopical(before, name), _untopical(after, name)
    if earlier is None or later is None or elapsed_s <= 0:
        return None
    return (later - earlier if later >= earlier else later) / elapsed_s


def _untopical(scrape: Scrape, name: str) -> float | None:
    """Return the total of a counter, which shares its name with the series of topics."""
    return next(
        (value for labels, value in scrape.samples.get(name, ()) if "topic" not in labels), None
    )


def _busy(scrape: Scrape) -> float | None:
    idle = next((value for _, value in scrape.samples.get(LOOP_IDLE, ())), None)
    return None if idle is None else min(1.0, max(0.0, 1 - idle))


def _connections(scrape: Scrape) -> int | None:
    found = [value for _, value in scrape.samples.get(CONNECTIONS, ())]
    return int(sum(found)) if found else None


def _label(scrape: Scrape, name: str, label: str) -> str | None:
    return next((labels.get(label) for labels, _ in scrape.samples.get(name, ())), None)
