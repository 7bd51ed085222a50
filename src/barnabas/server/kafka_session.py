"""The Kafka session of one connection: requests in, answers out, in order.

A request whose shape is known takes the fast path (`handlers/shapes.py`); all others are dispatched
to their handlers. Answers are sent in the order of the requests: a slot is kept for a pending one.
A pending long poll is answered when the next request arrives, since the next answer would have to
wait behind it.

Answers that wait behind a pending one are limited like those that wait for the socket: the broker
does not read from a client with too many of either.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct

from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch.produce_again import PacedAnswer
from barnabas.handlers.registry import PRODUCE, dispatch
from barnabas.model.callers import Caller, Principal, unauthenticated
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.security.client_quotas import ClientQuota
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import ConnectionOwner
from barnabas.server.foreign import ForeignProtocol, recognise

_API_KEY = Struct(">h")
OTHER_REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""Only Produce carries data; a larger request of another kind is a mistake or an attack."""


class Slot:
    """The place of one answer in the queue."""

    __slots__ = ("chunks", "memory_bytes", "pending", "size")

    def __init__(self, pending: Pending[list[Chunk]] | None = None) -> None:
        self.chunks: list[Chunk] | None = None
        self.pending = pending
        self.size = 0
        """The bytes of an answer that is ready and waits behind a pending one."""
        self.memory_bytes = 0
        """The same without slices of files."""


class KafkaSession:
    """The requests of one Kafka client, or of another broker, and the answers to them."""

    __slots__ = (
        "_connection",
        "_has_begun",
        "_held_bytes",
        "_overtaken",
        "_prefix_bytes",
        "_quota",
        "_server",
        "_shapes",
        "_slots",
        "_timers",
        "_transport",
        "caller",
    )

    def __init__(self, server: ConnectionOwner, connection: Connection) -> None:
        self._server = server
        self._timers = server.node.timers
        self._connection = connection
        self._transport = connection.transport
        self.caller = unauthenticated(connection.host, connection.listener)
        self._shapes = server.shapes.of(self.caller)
        self._slots: deque[Slot] = deque()
        self._held_bytes = 0
        """The bytes of answers that wait behind a pending one."""
        self._overtaken: Callable[[], None] | None = None
        """Completes the answer to the last request, if that is a long poll and still pending."""
        self._prefix_bytes = 0
        """The length of the part that the last request shared with its shape; 0 without a shape."""
        self._quota: ClientQuota | None = None
        """The quota of the client whose request a handler served last."""
        self._has_begun = False
        """Whether a request has arrived."""

    def authenticate(self, principal: Principal) -> None:
        """Serve the following requests as those of a principal."""
        connection = self._connection
        before = self.caller.remembered
        self.caller = Caller(principal, connection.listener, connection.host)
        self.caller.remembered.software = before.software
        self.caller.remembered.on_closed = before.on_closed
        self._shapes = self._server.shapes.of(self.caller)
        self._prefix_bytes = 0
        self._quota = None

    @property
    def takes_short_frames(self) -> bool:
        """Whether a frame may be too short for a request: never."""
        return False

    @property
    def is_answering(self) -> bool:
        """Whether an answer is pending."""
        return bool(self._slots)

    def send(self, answer: bytes) -> None:
        """Send an answer that another session has made, behind those of earlier requests."""
        if self._overtaken is not None:
            overtaken, self._overtaken = self._overtaken, None
            overtaken()
        KafkaSession._promise(self, [answer])

    def handle(self, frame: memoryview) -> None:
        """Answer a request at once, or keep a slot for its answer."""
        server, now_ms = self._server, self._timers.wall_ms
        if self._overtaken is not None:
            overtaken, self._overtaken = self._overtaken, None
            overtaken()
        if self._prefix_bytes:
            known = self._shapes.answer(frame, self._prefix_bytes, now_ms)
            if isinstance(known, bytes) and not self._slots:
                transport = self._transport
                transport.out.append(known)
                transport.out_bytes += len(known)
                if transport.out_bytes > server.queued_bytes_max:
                    self._connection.pause()
                return
            if known is not None:
                self._promise_known(known)
                return
        self._has_begun = True
        shapes = None if self._connection.peer else self._shapes
        answer, context = dispatch(server.node, frame, self.caller, now_ms, shapes)
        self._prefix_bytes, self._overtaken = context.prefix_bytes, context.overtaken
        self._quota = context.quota
        if answer is None:
            self._pace(context)
        else:
            self._promise(answer, context)

    def charge(self, duration_ns: int) -> None:
        """Charge the time of an event to the client.

        If that was too much, a handler serves the next request, and its response has the pause.
        """
        quota = self._quota
        if quota is None or quota.charge_time(duration_ns, self._timers.now_ms):
            self._prefix_bytes = 0

    def check(self, size: int, head: Buffer) -> None:
        """Refuse a client's request that is larger than its API needs."""
        (api_key,) = _API_KEY.unpack(head)
        if size > OTHER_REQUEST_BYTES_MAX and api_key != PRODUCE and not self._connection.peer:
            raise WireError(f"request of {size} bytes for API {api_key}, which carries no records")

    def has_room(self) -> bool:
        """Tell whether the client may send more requests, given the answers it has not read."""
        server = self._server
        return (
            self._transport.out_bytes + self._held_bytes <= server.queued_bytes_max
            and len(self._slots) <= server.queued_answers_max
        )

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Return the protocol that the client speaks instead of Kafka's, if it is recognised."""
        if self._has_begun:
            return None
        return recognise(first, self._bootstrap(), self._connection.listener)

    def _bootstrap(self) -> tuple[str, int]:
        """Return the address that clients of this listener connect to."""
        node = self._server.node
        return node.endpoints.get(self._connection.listener.name, node.advertised)

    def close(self) -> None:
        """Abandon the answers that are pending."""
        for slot in self._slots:
            if slot.pending is not None:
                slot.pending.abandon()
            self._connection.use_memory(-slot.memory_bytes)
        self._slots.clear()
        self._held_bytes = 0
        for closed in list(self.caller.remembered.on_closed.values()):
            closed()

    def _promise_known(self, known: bytes | Pending[list[Chunk]] | PacedAnswer) -> None:
        """Queue an answer of the fast path behind others, or for a client that must pause."""
        context = None
        if isinstance(known, PacedAnswer):
            known, context = known
        self._promise(known if isinstance(known, Pending) else [known[4:]], context)

    def _promise(
        self, answer: list[Chunk] | Pending[list[Chunk]], context: RequestContext | None = None
    ) -> None:
        """Queue an answer, or keep a slot for it if it is pending or others come first."""
        if isinstance(answer, Pending):
            slot = Slot(answer)
            self._slots.append(slot)
            answer.when_done(
                lambda chunks: self._fill(slot, chunks, context),
                lambda error: self._server.failed(self._connection, error),
            )
            if not answer.done:
                self._pace(context)  # a client that must pause is not read before the answer either
            return
        if self._slots:
            slot = Slot()
            self._slots.append(slot)
            self._hold(slot, answer)
        else:
            self._connection.queue(answer)
        self._pace(context)

    def _hold(self, slot: Slot, chunks: list[Chunk]) -> None:
        """Keep an answer until those before it are ready."""
        slot.chunks = chunks
        slot.size = size_of(chunks)
        self._held_bytes += slot.size
        slot.memory_bytes = memory_of(chunks)
        self._connection.use_memory(slot.memory_bytes)

    def _fill(self, slot: Slot, chunks: list[Chunk], context: RequestContext | None) -> None:
        """Queue an answer that was pending, and those that waited behind it."""
        connection = self._connection
        if connection.closed:
            return
        slots = self._slots
        if slots[0] is slot:
            slots.popleft()
            connection.queue(chunks)
            while slots and (ready := slots[0].chunks) is not None:
                held = slots.popleft()
                self._held_bytes -= held.size
                connection.use_memory(-held.memory_bytes)
                connection.queue(ready)
        else:
            self._hold(slot, chunks)
        self._pace(context)

    def _pace(self, context: RequestContext | None = None) -> None:
        """Stop reading if the client is over its quota, or too many of its answers wait."""
        if context is not None and context.throttle_ms and not self._connection.peer:
            self._connection.mute(context.throttle_ms)
        elif not self.has_room():
            self._connection.pause()


def size_of(chunks: list[Chunk]) -> int:
    """Return the bytes of an answer, files included."""
    return sum(chunk.length if isinstance(chunk, FileSlice) else len(chunk) for chunk in chunks)


def memory_of(chunks: list[Chunk]) -> int:
    """Return the bytes of an answer that are in memory."""
    return sum(len(chunk) for chunk in chunks if not isinstance(chunk, FileSlice))
