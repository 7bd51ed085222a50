"""A collector of meters in memory."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.model.meters import AnsweredRequest, Gauge


class Total(NamedTuple):
    """The totals of the requests of one API with one error code."""

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
        self.waiting: Counter[int] = Counter()
        self.software: Counter[tuple[str, str]] = Counter()

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

    def begin_wait(self, api_key: int) -> None:
        """Count a request whose response is pending."""
        self.waiting[api_key] += 1

    def end_wait(self, api_key: int) -> None:
        """Stop counting it."""
        self.waiting[api_key] -= 1

    def name_software(self, software: tuple[str, str]) -> None:
        """Count a client's software."""
        self.software[software] += 1

    def forget_software(self, software: tuple[str, str]) -> None:
        """Stop counting it."""
        self.software[software] -= 1

    def watch(self, name: str, read: Gauge) -> None:
        """Set a gauge."""
        self.gauges[name] = read

    def read(self, name: str) -> Mapping[str, float]:
        """Return the values of a gauge."""
        return self.gauges[name]()
