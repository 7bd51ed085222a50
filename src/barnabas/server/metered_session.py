"""A Kafka session that counts its requests: see `model/meters.py`.

Connections get it in place of `KafkaSession` while a collector is set. Error codes are read from
the encoded responses, since the fast path answers without a response object.
"""

import time
from functools import partial
from struct import Struct
from typing import NamedTuple

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.meters import AnsweredRequest, Meters
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.server.connection import Connection
from barnabas.server.kafka_session import KafkaSession, size_of
from barnabas.server.ports import ConnectionOwner
from barnabas.server.response_errors import first_error

_API = Struct(">hh")
LENGTH_BYTES = 4


class ReceivedRequest(NamedTuple):
    """A request that is not answered yet."""

    api_key: int
    api_version: int
    size: int
    received_ns: int


class MeteredSession(KafkaSession):
    """A Kafka session while a collector is set."""

    __slots__ = ("_meters", "_received")

    def __init__(self, meters: Meters, server: ConnectionOwner, connection: Connection) -> None:
        super().__init__(server, connection)
        self._meters = meters
        self._received: ReceivedRequest | None = None
        """The request that is being handled, until `_promise` has its response."""

    def handle(self, frame: memoryview) -> None:
        """Answer a request, and count it now or when its answer is ready."""
        if self._overtaken is not None:  # here, so that its answer is not taken for this one's
            overtaken, self._overtaken = self._overtaken, None
            overtaken()
        api_key, api_version = _API.unpack_from(frame)
        started_ns = time.perf_counter_ns()
        received = ReceivedRequest(api_key, api_version, len(frame), started_ns)
        self._received = received
        out = self._transport.out
        before = len(out)
        try:
            super().handle(frame)
        except Exception as error:
            is_invalid = isinstance(error, WireError)
            code = ErrorCode.INVALID_REQUEST if is_invalid else ErrorCode.UNKNOWN_SERVER_ERROR
            self._count(received, code, 0)
            raise
        if self._is_promised():
            return
        self._received = None
        # The fast path has queued its answer, with its length in front; or there is none.
        answer = out[-1] if len(out) > before else b""
        if isinstance(answer, bytes) and answer:
            self._count_answer(received, [answer[LENGTH_BYTES:]])
        else:
            self._count(received, 0, 0)

    def _is_promised(self) -> bool:
        """Tell whether `_promise` has taken the request that is being handled."""
        return self._received is None

    def _promise(
        self, answer: list[Chunk] | Pending[list[Chunk]], context: RequestContext | None = None
    ) -> None:
        received, self._received = self._received, None
        assert received is not None
        if isinstance(answer, Pending):
            answer = answer.map(partial(self._count_answer, received))
        else:
            self._count_answer(received, answer)
        super()._promise(answer, context)

    def _count_answer(self, received: ReceivedRequest, chunks: list[Chunk]) -> list[Chunk]:
        """Count a request whose answer is ready; return the answer."""
        error_code = first_error(received.api_key, received.api_version, chunks)
        self._count(received, error_code, size_of(chunks))
        return chunks

    def _count(self, received: ReceivedRequest, error_code: int, bytes_out: int) -> None:
        self._meters.count_request(
            AnsweredRequest(
                received.api_key,
                received.api_version,
                int(error_code),
                received.size,
                bytes_out,
                time.perf_counter_ns() - received.received_ns,
            )
        )
