"""A collector of meters in memory."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.model.meters import AnsweredRequest, Gauge


class Total(NamedTuple):
    """What the requests of one API with one error code come to."""

    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    latency_ns: int = 0


class MemoryMeters:
    """Totals by API key and error code, and the gauges by name."""

    is_collecting = True

    def __init__(self) -> None:
        self.totals: dict[tuple[int, int], Total] = defaultdict(Total)
        self.gauges: dict[str, Gauge] = {}

    def count_request(self, request: AnsweredRequest) -> None:
        """Add a request to the total of its API and error."""
        key = (request.api_key, request.error_code)
        total = self.totals[key]
        self.totals[key] = Total(
            total.requests + 1,
            total.bytes_in + request.bytes_in,
            total.bytes_out + request.bytes_out,
            total.latency_ns + request.latency_ns,
        )

    def watch(self, name: str, read: Gauge) -> None:
        """Keep a gauge."""
        self.gauges[name] = read

    def read(self, name: str) -> Mapping[str, float]:
        """Return the values of a gauge."""
        return self.gauges[name]()
