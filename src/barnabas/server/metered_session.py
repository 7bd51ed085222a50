"""A Kafka session that counts its requests: see `model/meters.py`.

Connections get it in place of `KafkaSession` while a collector is set. The handler or the encoder
leaves the first error of a response in the request's context. The fast path has none: what it
answers at once has no error, and what it answers later than that is one chunk where it succeeded.

Each request costs two looks at the clock, a few numbers in an object that the session reuses, and
one call of the collector.
"""

import time
from struct import Struct
from typing import NamedTuple

from barnabas.handlers.context import RequestContext
from barnabas.handlers.response_errors import UNKNOWN_ERROR, first_error
from barnabas.model.callers import Principal
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.meters import AnsweredRequest, Meters
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import ConnectionOwner
from barnabas.server.kafka_session import KafkaSession, Slot, size_of

_API = Struct(">hh")
LENGTH_BYTES = 4
NS_PER_MS = 1_000_000


class WaitingRequest(NamedTuple):
    """A request whose response is pending."""

    api_key: int
    api_version: int
    size: int
    started_ns: int
    handler_ns: int
    queued_ms: int


class MeteredSession(KafkaSession):
    """A Kafka session while a collector is set."""

    __slots__ = ("_answered", "_is_promised", "_meters", "_software", "_waiting")

    def __init__(self, meters: Meters, server: ConnectionOwner, connection: Connection) -> None:
        super().__init__(server, connection)
        self._meters = meters
        self._answered = AnsweredRequest(self.caller, self._transport.out)
        self._waiting: dict[Slot, WaitingRequest] = {}
        self._is_promised = False
        """Whether `_promise` has had the response to the request that is being handled."""
        self._software: tuple[str, str] | None = None

    def authenticate(self, principal: Principal) -> None:
        """Serve the following requests as those of a principal."""
        super().authenticate(principal)
        self._answered.caller = self.caller

    def handle(self, frame: memoryview) -> None:
        """Answer a request, and count it now or when its answer is ready."""
        if self._overtaken is not None:  # here, so that its answer is not taken for this one's
            overtaken, self._overtaken = self._overtaken, None
            overtaken()
        started_ns = time.perf_counter_ns()
        answered, transport = self._answered, self._transport
        answered.api_key, answered.api_version = _API.unpack_from(frame)
        answered.bytes_in = len(frame)
        answered.error_code = answered.throttle_ms = answered.bytes_out = 0
        answered.partitions = 1
        answered.queued_ms = self._timers.now_ms - self._connection.last_progress_ms
        self._is_promised = False
        out_bytes = transport.out_bytes
        try:
            super().handle(frame)
        except Exception as error:
            is_invalid = isinstance(error, WireError)
            code = ErrorCode.INVALID_REQUEST if is_invalid else ErrorCode.UNKNOWN_SERVER_ERROR
            answered.error_code = int(code)
            self._count(started_ns)
            raise
        if not self._is_promised:
            # The fast path has queued its answer, with its length in front; or there is none.
            answered.bytes_out = max(0, transport.out_bytes - out_bytes - LENGTH_BYTES)
        elif self._slots and self._slots[-1].chunks is None:
            self._wait(self._slots[-1], started_ns)
            return
        self._count(started_ns)

    def close(self) -> None:
        """Give up the answers that are pending."""
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            self._meters.end_wait(request.api_key)
        if self._software is not None:
            self._meters.forget_software(self._software)
            self._software = None
        super().close()

    def _count(self, started_ns: int) -> None:
        """Count the request that was handled and answered in this event."""
        answered = self._answered
        answered.latency_ns = answered.handler_ns = time.perf_counter_ns() - started_ns
        self._meters.count_request(answered)

    def _wait(self, slot: Slot, started_ns: int) -> None:
        """Remember a request whose answer is pending."""
        answered = self._answered
        self._waiting[slot] = WaitingRequest(
            answered.api_key,
            answered.api_version,
            answered.bytes_in,
            started_ns,
            time.perf_counter_ns() - started_ns,
            answered.queued_ms,
        )
        self._meters.begin_wait(answered.api_key)

    def _promise(
        self, answer: list[Chunk] | Pending[list[Chunk]], context: RequestContext | None = None
    ) -> None:
        self._is_promised = True
        if context is not None:
            self._answered.client_id = context.client_id or ""
            if context.software is not None:
                self._name(context.software)
        if not isinstance(answer, Pending):
            self._note(answer, context)
        super()._promise(answer, context)

    def _fill(self, slot: Slot, chunks: list[Chunk], context: RequestContext | None) -> None:
        """Count a request whose answer was pending, and queue the answer."""
        waited = self._waiting.pop(slot, None)
        answered = self._answered
        if waited is None:  # the answer was there at once, and `handle` counts it
            self._note(chunks, context)
        else:
            self._meters.end_wait(waited.api_key)
            answered.api_key, answered.api_version = waited.api_key, waited.api_version
            answered.bytes_in, answered.queued_ms = waited.size, waited.queued_ms
            answered.handler_ns = waited.handler_ns
            answered.error_code, answered.partitions = 0, 1
            self._note(chunks, context)
            total_ns = time.perf_counter_ns() - waited.started_ns
            if context is not None and context.asked_wait_ms:
                since_ns = total_ns - waited.handler_ns - context.asked_wait_ms * NS_PER_MS
                total_ns = waited.handler_ns + max(0, since_ns)
            answered.latency_ns = total_ns
            self._meters.count_request(answered)
        super()._fill(slot, chunks, context)

    def _note(self, chunks: list[Chunk], context: RequestContext | None) -> None:
        """Note the size and the first error of an answer."""
        answered = self._answered
        answered.bytes_out = size_of(chunks)
        if context is None:
            code = 0 if len(chunks) == 1 else UNKNOWN_ERROR
        else:
            code = context.error_code
            answered.throttle_ms = context.throttle_ms
            answered.partitions = context.partition_count
        if code == UNKNOWN_ERROR:
            code = first_error(answered.api_key, answered.api_version, chunks)
        answered.error_code = code

    def _name(self, software: tuple[str, str]) -> None:
        if self._software is not None:
            self._meters.forget_software(self._software)
        self._software = software
        self._meters.name_software(software)
