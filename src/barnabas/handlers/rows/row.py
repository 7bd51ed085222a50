"""What a row of the registry says of an API, and the way from a frame to its response.

`Api` is the row of most APIs: it uses the generated codecs. Produce and Fetch have codecs and rows
of their own (`produce_fetch_rows.py`). A handler returns its response or a `Pending` one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from barnabas.handlers import forwarding
from barnabas.handlers.context import RequestContext
from barnabas.handlers.shapes import CallerShapes
from barnabas.model.errors import WireError
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
"""The chunks of a response, header included and length not; or a promise of them; or nothing."""
Handler = Callable[[Node, Q, RequestContext], R | Pending[R]]
Learn = Callable[[CallerShapes, memoryview, RequestHeader, Q, int], int]
"""Has the fast path learn a request that was served; see `CallerShapes`."""


@dataclass(frozen=True, slots=True)
class Row(ABC):
    """One API: the versions that are served, and what a caller needs for it."""

    key: ApiKey
    low: int
    high: int
    needs: tuple[Need, ...] = field(kw_only=True)
    """The permissions that a caller needs, all of them. Nothing checks them yet."""
    is_forwarded: bool = field(default=False, kw_only=True)
    """Whether the active controller must decide; other brokers forward the request to it."""

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
        """Handle a request; with `shapes`, have the fast path learn it."""

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
        encode = encoder(self.response, version)
        answer = self.handle(node, request, context)
        if shapes is not None and self.learn is not None:
            context.prefix_bytes = self.learn(shapes, frame, header, request, context.now_ms)
        if isinstance(answer, Pending):
            return answer.map(lambda response: [head, encode(response)])
        return [head, encode(answer)]

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
            body = bytes(frame[header.body :])
            forwarded = ForwardedRequest(header, body, request, context.caller)
            return forwarding.forward(node, forwarded).map(lambda answer: [head, answer])
        encode = encoder(self.response, header.api_version)
        answer = self.handle(node, request, context)
        if not isinstance(answer, Pending):
            # It may depend on records that are proposed but not committed, such as a new topic.
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
