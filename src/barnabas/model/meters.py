"""The port through which the broker counts what it does: requests, bytes, latencies, sizes.

A collector (the metrics of the HTTP listener, a test) implements `Meters` and is given to the
broker when it is made. Requests are pushed to it one by one. Everything that has a current size,
such as a queue or a log, is a gauge: the broker registers a function, and the collector calls it to
get the value. So gauges cost nothing between two readings.

Without a collector the broker has `NO_METERS`, and its connections get sessions that do not measure
at all.
"""

from collections.abc import Callable, Mapping, Sized
from typing import Protocol

from barnabas.model.callers import Caller

Gauge = Callable[[], Mapping[str, float]]
"""Returns current values by label; the label is "" for a single value."""


class AnsweredRequest:
    """One request and how it ended. A session fills in the same object again and again."""

    __slots__ = (
        "api_key",
        "api_version",
        "bytes_in",
        "bytes_out",
        "caller",
        "client_id",
        "error_code",
        "handler_ns",
        "latency_ns",
        "partitions",
        "queued_ms",
        "throttle_ms",
        "unsent",
    )

    def __init__(self, caller: Caller, unsent: Sized = ()) -> None:
        self.caller = caller
        self.unsent = unsent
        """What the client has not read yet of this and of earlier responses; it changes."""
        self.client_id = ""
        """The client id of the connection's last request that a handler served."""
        self.api_key = 0
        self.api_version = 0
        self.error_code = 0
        """The first error code in the response, for any part of the request; 0 if there is none."""
        self.bytes_in = 0
        """The size of the request, without the four bytes of its length."""
        self.bytes_out = 0
        """The size of the response, without its length; 0 if the request wants no response."""
        self.latency_ns = 0
        """From the arrival of the last byte of the request until the response was ready to be
        sent, less the wait that a Fetch, JoinGroup or SyncGroup asked for."""
        self.handler_ns = 0
        """The part of it until the handler returned."""
        self.queued_ms = 0
        """How long the request waited before, behind others of its connection."""
        self.partitions = 0
        """How many partitions it is about, for Produce and Fetch."""
        self.throttle_ms = 0
        """How long the client must pause."""


class Meters(Protocol):
    """What a collector implements. All calls come from the event loop's thread."""

    @property
    def is_collecting(self) -> bool:
        """Whether to measure at all. The broker asks once for each connection."""

    def count_request(self, request: AnsweredRequest) -> None:
        """Count one request. The object must not be kept: the next request changes it."""

    def begin_wait(self, api_key: int) -> None:
        """Note that the response to a request is pending."""

    def end_wait(self, api_key: int) -> None:
        """Note that it no longer is: the response is ready, or the connection closed."""

    def name_software(self, software: tuple[str, str]) -> None:
        """Note the name and version of the software of a client that has connected."""

    def forget_software(self, software: tuple[str, str]) -> None:
        """Note that such a client's connection has closed."""

    def watch(self, name: str, read: Gauge) -> None:
        """Register a gauge. Call it on the event loop's thread only."""


class NoMeters:
    """Collects nothing."""

    is_collecting = False

    def count_request(self, request: AnsweredRequest) -> None:
        """Ignore a request."""

    def begin_wait(self, api_key: int) -> None:
        """Ignore a request that waits."""

    def end_wait(self, api_key: int) -> None:
        """Ignore its end."""

    def name_software(self, software: tuple[str, str]) -> None:
        """Ignore a client."""

    def forget_software(self, software: tuple[str, str]) -> None:
        """Ignore its end."""

    def watch(self, name: str, read: Gauge) -> None:
        """Ignore a gauge."""


NO_METERS = NoMeters()
