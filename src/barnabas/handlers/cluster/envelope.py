"""Envelope (key 58), version 0: a client's request that another broker forwards to the controller.

The request inside is handled as if the client had sent it to the controller: the handler sees the
client's principal, listener, host and client id. Only other brokers may send an envelope.

An envelope is refused with Kafka's errors: NOT_CONTROLLER by a broker that is not the controller,
INVALID_REQUEST if the request inside is malformed or of an API that brokers do not forward,
PRINCIPAL_DESERIALIZATION_FAILURE if the principal cannot be read. Errors of the request itself are
in the response inside.
"""

from collections.abc import Callable

from barnabas.handlers.context import RequestContext
from barnabas.model.callers import Caller
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk, FileSlice
from barnabas.node.node import Node
from barnabas.protocol.envelopes import read_envelope
from barnabas.protocol.headers import parse_request_header
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

Answer = list[Chunk] | Pending[list[Chunk]] | None
Dispatch = Callable[[Node, memoryview, Caller, int], tuple[Answer, RequestContext]]


class EnvelopeHandler:
    """Opens envelopes; the registry says how a request is handled and which may be forwarded."""

    def __init__(self, dispatch: Dispatch, is_forwarded: Callable[[int], bool]) -> None:
        self._dispatch = dispatch
        self._is_forwarded = is_forwarded

    def handle(
        self, node: Node, request: EnvelopeRequest, context: RequestContext
    ) -> EnvelopeResponse | Pending[EnvelopeResponse]:
        """Handle the request inside; return its response in another envelope."""
        if not node.is_controller:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        try:
            caller, frame = read_envelope(request)
            if not self._is_forwarded(parse_request_header(frame).api_key):
                return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
            answer, _ = self._dispatch(node, frame, caller, context.now_ms)
        except ApiError as error:
            return EnvelopeResponse(error_code=error.code)
        except WireError:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        if isinstance(answer, Pending):
            return answer.map(_enclosed)
        return _enclosed(answer or [])


def _enclosed(chunks: list[Chunk]) -> EnvelopeResponse:
    parts = [chunk for chunk in chunks if not isinstance(chunk, FileSlice)]
    assert len(parts) == len(chunks), "a forwarded request is answered without files"
    return EnvelopeResponse(response_data=b"".join(parts))
