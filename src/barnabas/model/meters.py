"""The port through which the broker counts what it does: requests, bytes, latencies, sizes.

A collector (an exporter, a console, a test) implements `Meters` and is given to the broker when it
is made. Requests are pushed to it one by one. Everything that has a size at any moment, such as a
queue or a log, is a gauge: the broker registers a function, and the collector calls it when it
wants to know. So gauges cost nothing between two readings.

Where nothing collects, the broker has `NO_METERS`, and its connections get sessions that do not
measure at all.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

Gauge = Callable[[], Mapping[str, float]]
"""Returns current values by label; the label is "" for a single value."""


class AnsweredRequest(NamedTuple):
    """One request and how it ended."""

    api_key: int
    api_version: int
    error_code: int
    """The first error code in the response, whatever part of the request it is for; 0 for none."""
    bytes_in: int
    """The size of the request, without the four bytes of its length."""
    bytes_out: int
    """The size of the response, likewise; 0 where the request wants none."""
    latency_ns: int
    """From the moment the request was whole until its response was ready to be sent."""


class Meters(Protocol):
    """What a collector implements. All calls come from the event loop's thread."""

    @property
    def is_collecting(self) -> bool:
        """Whether to measure at all. The broker asks once for each connection."""

    def count_request(self, request: AnsweredRequest) -> None:
        """Count one request."""

    def watch(self, name: str, read: Gauge) -> None:
        """Register a gauge. Call it on the event loop's thread only."""


class NoMeters:
    """Collects nothing."""

    is_collecting = False

    def count_request(self, request: AnsweredRequest) -> None:
        """Ignore a request."""

    def watch(self, name: str, read: Gauge) -> None:
        """Ignore a gauge."""


NO_METERS = NoMeters()
