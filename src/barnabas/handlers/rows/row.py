"""A row of the registry: what it declares about an API, and how it turns a frame into a response.

`Api` is the row of most APIs: it uses the generated codecs. Produce and Fetch have codecs and rows
of their own (`produce_fetch_rows.py`). A handler returns its response or a `Pending` one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from barnabas.handlers import forwarding, response_errors, throttled_responses
from barnabas.handlers.context import RequestContext
from barnabas.handlers.shapes import CallerShapes
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.permissions import Need
from barnabas.model.ports import Chunk
from barnabas.node.cluster.peer_requests import ForwardedRequest
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.message import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

Answer = list[Chunk] | Pending[list[Chunk]] | None
"""The chunks of a response with its header, without its length; pending or not; None for none."""
Handler = Callable[[Node, Q, RequestContext], R | Pending[R]]
Refuse = Callable[[Node, Q, RequestContext], R | None]
Learn = Callable[[CallerShapes, memoryview, RequestHeader, Q, int], int]
"""Teaches the fast path a request that was served; see `CallerShapes`."""


WITHOUT_CLIENT = ApiError(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    "a broker forwarded the request without its client's identity; upgrade that broker",
)


@dataclass(frozen=True, slots=True)
class Row(ABC):
    """One API: the versions that are served, and what a caller needs for it."""

    key: ApiKey
    low: int
    high: int
    needs: tuple[Need, ...] = field(kw_only=True)
    """The permissions that a caller needs, all of them. The handler checks each for the part of the
    request that it concerns (`handlers/authorization.py`)."""
    is_forwarded: bool = field(default=False, kw_only=True)
    """Whether the active controller must decide; other brokers forward the request to it."""
    is_of_brokers: bool = field(default=False, kw_only=True)
    """Whether brokers also send such a request on their own behalf. With an authorizer, the
    controller accepts other forwarded requests only in an Envelope, which names the client."""

    @property
    @abstractmethod
    def has_fast_path(self) -> bool:
        """Whether repeated requests may skip the handler; see `shapes.py`."""

    @abstractmethod
    def serve(
        self,
        node: Node,
        frame: memoryview,
        header: RequestHeader,
        context: RequestContext,
        shapes: CallerShapes | None,
    ) -> Answer:
        """Handle a request; with `shapes`, the fast path learns it."""

    def answer_itself(
        self, node: Node, request: Message, context: RequestContext
    ) -> Message | Pending[Message]:
        """Handle a request of the broker's own, which is not encoded."""
        raise WireError(f"a broker does not send {type(request).__name__} to itself")


@dataclass(frozen=True, slots=True)
class Api(Row, Generic[Q, R]):
    """An API with generated codecs."""

    request: type[Q]
    response: type[R]
    handle: Handler[Q, R]
    learn: Learn[Q] | None = field(default=None, kw_only=True)
    refuse_here: Refuse[Q, R] | None = field(default=None, kw_only=True)
    """Refuses a request that the broker to which a client sent it must not forward."""

    @property
    def has_fast_path(self) -> bool:
        """Whether repeated requests may skip the handler."""
        return self.learn is not None

    def serve(
        self,
        node: Node,
        frame: memoryview,
        header: RequestHeader,
        context: RequestContext,
        shapes: CallerShapes | None,
    ) -> Answer:
        """Decode a request, handle it, encode the response."""
        version = header.api_version
        head = response_header(header.api_key, version, header.correlation_id)
        request, _ = decoder(self.request, version)(frame, header.body)
        if self.is_forwarded:
            return self._decide(node, frame, header, head, request, context)
        encode = self._encoder(node, context)
        answer = self.handle(node, request, context)
        if shapes is not None and self.learn is not None and not context.was_denied:
            context.prefix_bytes = self.learn(shapes, frame, header, request, context.now_ms)
        if isinstance(answer, Pending):
            return answer.map(lambda response: [head, encode(response)])
        return [head, encode(answer)]

    def _encoder(self, node: Node, context: RequestContext) -> Callable[[R], bytes]:
        """Return what encodes the response, with the pause of a quota and a note of its error."""
        encode = encoder(self.response, context.version)
        if context.quota is not None:
            encode = throttled_responses.pacing(node, context, encode)
        if node.traffic is not None:
            encode = response_errors.noting(context, encode)
        return encode

    def _decide(
        self,
        node: Node,
        frame: memoryview,
        header: RequestHeader,
        head: bytes,
        request: Q,
        context: RequestContext,
    ) -> Answer:
        """Handle a request on the controller; elsewhere forward a client's, refuse a broker's."""
        if not node.is_controller:
            if context.caller.listener.is_peer:
                return [head, forwarding.refuse(header, request)]
            refused = None if self.refuse_here is None else self.refuse_here(node, request, context)
            if refused is not None:
                return [head, encoder(self.response, header.api_version)(refused)]
            body = bytes(frame[header.body :])
            forwarded = ForwardedRequest(header, body, request, context.caller)
            answered = forwarding.forward(node, forwarded)
            if context.quota is not None:
                relay = partial(
                    throttled_responses.relay, context, header.api_key, header.api_version
                )
                answered = answered.map(relay)
            if node.traffic is not None:
                context.error_code = response_errors.UNKNOWN_ERROR
            return answered.map(lambda answer: [head, answer])
        if (
            node.authorizer is not None
            and context.caller.listener.is_peer
            and not self.is_of_brokers
        ):
            return [head, forwarding.refuse(header, request, WITHOUT_CLIENT)]
        encode = self._encoder(node, context)
        answer = self.handle(node, request, context)
        if not isinstance(answer, Pending):
            # The answer may depend on proposed records, such as a new topic: commit them first.
            answer = node.commit((), context.now_ms).map(partial(_once_committed, answer))
        encoded: Pending[list[Chunk]] = answer.map(lambda response: [head, encode(response)])
        return encoded.or_refused(lambda _: [head, forwarding.refuse(header, request)])

    def answer_itself(
        self, node: Node, request: Message, context: RequestContext
    ) -> Message | Pending[Message]:
        """Handle a request of the broker's own, which is not encoded."""
        assert isinstance(request, self.request)
        answer = self.handle(node, request, context)
        return answer.map(_as_message) if isinstance(answer, Pending) else answer


def _once_committed(answer: R, _: None) -> R:
    return answer


def _as_message(response: Message) -> Message:
    return response
