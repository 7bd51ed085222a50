"""One connection of the HTTP listener: a request, its answer, the next request.

    reading a head  ->  waiting for the page  ->  sending the answer  ->  reading a head, or closing

While an answer is on its way nothing more is read, so a client that pipelines requests waits. A
long answer is made piece by piece, each in an event of its own and only once the socket has taken
the pieces before: a slow reader costs little memory.

Everything has a limit: the size of a head, the time to send one, the time in which a client that
does not read loses its connection, and the time of a whole answer.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.logs import get
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.server.edge_ports import ConnectionOwner
from barnabas.server.http.http_reply import Page, Reply, head_of, refusal
from barnabas.server.http.http_request import HEAD_BYTES_MAX, HttpError, HttpRequest, parse
from barnabas.server.transport import Transport

END_OF_HEAD = b"\r\n\r\n"
HEAD_MS_MAX = 10_000
"""How long a client may take to send a head, from its first byte or from connecting on."""
IDLE_MS_MAX = 120_000
"""How long a connection stays open between two requests."""
STALL_MS_MAX = 10_000
"""How long a client may read nothing of its answer."""
ANSWER_MS_MAX = 60_000
"""How long an answer may take from its beginning to its end."""
UNSENT_BYTES_MAX = 64 * 1024
"""No further piece of an answer is made while more than this waits for the socket."""
LEFT_BYTES_MAX = 64 * 1024
"""How much is read and dropped of a client that was refused, so that it can read why."""
GZIP_WINDOW_BITS = 31
GZIP_LEVEL = 1

Respond = Callable[[HttpRequest], Page]

log = get("barnabas.server")


class HttpConnection:
    """One accepted socket of the HTTP listener."""

    __slots__ = (
        "_answer_end_ms",
        "_body",
        "_closes",
        "_head",
        "_is_chunked",
        "_left_bytes",
        "_page",
        "_pending",
        "_request",
        "_respond",
        "_server",
        "_timer",
        "_timers",
        "_transport",
        "_turn_is_due",
        "_zipping",
        "closed",
        "host",
        "last_progress_ms",
        "peer",
        "stalled_since_ms",
    )

    def __init__(
        self, server: ConnectionOwner, transport: Transport, host: str, respond: Respond
    ) -> None:
        self._server = server
        self._timers = server.node.timers
        self._transport = transport
        self._respond = respond
        self.host = host
        self.peer = False
        self.closed = False
        self.last_progress_ms = server.monotonic_ms()
        self.stalled_since_ms: int | None = None
        self._head = bytearray()
        self._request: HttpRequest | None = None
        """The request that is being answered."""
        self._page: Page | None = None
        self._pending: Pending[Any] | None = None
        """What the page waits for."""
        self._body: Iterator[str] | None = None
        """The pieces of the answer that are not made yet."""
        self._is_chunked = False
        self._zipping: Any = None
        self._turn_is_due = False
        """Whether the server is going to call `_send_more`."""
        self._closes = False
        """Whether the connection ends with this answer; what the client still sends is dropped."""
        self._left_bytes = 0
        self._answer_end_ms = 0
        self._timer: Timer | None = None
        self._limit_time(HEAD_MS_MAX)

    @property
    def descriptor(self) -> int:
        """The socket's descriptor."""
        return self._transport.descriptor

    @property
    def is_muted(self) -> bool:
        """Whether the server's own limits do not apply: this connection has its own."""
        return True

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long a stall may last for the server; see `is_muted`."""
        return stall_ms

    # --- reading ---

    def on_readable(self) -> None:
        """Read what has arrived, and answer the request where its head is complete."""
        buffer = self._server.receive_buffer
        try:
            count = self._transport.receive(buffer[:HEAD_BYTES_MAX])
        except BlockingIOError:
            return
        except OSError as error:
            self._server.lost(self, error)
            return
        if not count:
            self.close()
        elif self._closes:
            self._left_bytes += count
            if self._left_bytes > LEFT_BYTES_MAX:
                self.close()
        else:
            if not self._head:
                self._limit_time(HEAD_MS_MAX)
            self._head += buffer[:count]
            self._take_request()

    def _take_request(self) -> None:
        """Begin to answer the next request, if it has arrived."""
        while self._head.startswith(b"\r\n"):
            del self._head[:2]  # an empty line between two requests, which some clients send
        end = self._head.find(END_OF_HEAD)
        if end > HEAD_BYTES_MAX or (end < 0 and len(self._head) > HEAD_BYTES_MAX):
            self._refuse(431, f"the head of the request is longer than {HEAD_BYTES_MAX} bytes")
            return
        if end < 0:
            return
        head = bytes(self._head[:end])
        del self._head[: end + len(END_OF_HEAD)]
        try:
            request = parse(head)
        except HttpError as error:
            self._refuse(error.status, error.problem)
            return
        self._transport.watch_reading(self, wanted=False)
        self._request = request
        self._page = self._respond(request)
        self._answer_end_ms = self._timers.now_ms + ANSWER_MS_MAX
        self._limit_time(ANSWER_MS_MAX)
        self._go_on(None)

    def _refuse(self, status: int, problem: str) -> None:
        self._head.clear()
        self._request = HttpRequest(path="", parameters={}, keeps_alive=False)
        self._answer_end_ms = self._timers.now_ms + STALL_MS_MAX
        self._reply(refusal(status, problem))

    # --- the page ---

    def _go_on(self, result: object) -> None:
        """Run the page until it waits, or returns the answer."""
        page = self._page
        if page is None or self.closed:
            return
        try:
            waits_for = page.send(result)
        except StopIteration as end:
            self._page = None
            self._reply(end.value)
        except Exception:
            log.exception("a page of the HTTP listener failed", client=self.host)
            self._page = None
            self._reply(refusal(500, "the page failed; the broker's log says why"))
        else:
            self._wait_for(waits_for)

    def _wait_for(self, waits_for: Pending[Any] | None) -> None:
        if waits_for is None:
            self._server.in_turn(lambda: self._go_on(None))
            return
        self._pending = waits_for
        waits_for.when_done(self._done, lambda _: self._done(None))

    def _done(self, result: object) -> None:
        """Go on with the page in an event of its own; None stands for a failure."""
        self._pending = None
        self._server.in_turn(lambda: self._go_on(result))

    # --- sending ---

    def _reply(self, reply: Reply) -> None:
        request = self._request
        assert request is not None
        self._closes = not request.keeps_alive
        framing: dict[str, str] = {}
        content = b""
        if isinstance(reply.body, str):
            content = reply.body.encode()
            framing["Content-Length"] = str(len(content))
        else:
            self._is_chunked = request.has_chunks
            self._closes = self._closes or not request.has_chunks
            if self._is_chunked:
                framing["Transfer-Encoding"] = "chunked"
            framing["Vary"] = "Accept-Encoding"
            if request.accepts_gzip:
                framing["Content-Encoding"] = "gzip"
                self._zipping = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
            self._body = None if request.is_head else reply.body
        self._queue(head_of(reply, framing, keeps_alive=not self._closes))
        self._queue(b"" if request.is_head else content)
        self.flush()

    def _send_more(self) -> None:
        """Make the next piece of the answer, and send it."""
        self._turn_is_due = False
        body = self._body
        if body is None or self.closed:
            return
        try:
            piece = next(body, None)
        except Exception:
            log.exception("a page of the HTTP listener failed", client=self.host)
            self.close()  # a chunk is missing at the end, so the client knows
            return
        if piece is None:
            self._body = None
            self._queue_piece(b"" if self._zipping is None else self._zipping.flush())
            self._queue(b"0\r\n\r\n" if self._is_chunked else b"")
        else:
            content = piece.encode()
            self._queue_piece(content if self._zipping is None else self._zipping.compress(content))
        self.flush()

    def _queue_piece(self, content: bytes) -> None:
        if content and self._is_chunked:
            content = b"%x\r\n%s\r\n" % (len(content), content)
        self._queue(content)

    def _queue(self, content: bytes) -> None:
        if content:
            self._transport.out.append(content)
            self._transport.out_bytes += len(content)

    def on_writable(self) -> None:
        """Send more: the kernel has room."""
        self.flush()

    def flush(self) -> None:
        """Send what is queued, then go on with the answer, or with the next request."""
        if self.closed:
            return
        transport = self._transport
        waiting = len(transport.out)
        try:
            moved = transport.send_queued() or len(transport.out) < waiting
        except OSError as error:
            self._server.lost(self, error)
            return
        unsent = sum(map(len, transport.out))
        if unsent and (moved or not transport.is_writing):
            self._limit_time(min(STALL_MS_MAX, self._answer_end_ms - self._timers.now_ms))
        transport.watch_writing(self, wanted=unsent > 0)
        if self._body is not None:
            if unsent <= UNSENT_BYTES_MAX and not self._turn_is_due:
                self._turn_is_due = True
                self._server.in_turn(self._send_more)
        elif not unsent and self._request is not None and self._page is None:
            self._end_answer()

    def _end_answer(self) -> None:
        self._request = None
        self._zipping, self._is_chunked = None, False
        if self._closes:
            self._transport.watch_reading(self, wanted=True)
            self._limit_time(HEAD_MS_MAX)
            try:
                self._transport.end_sending()
            except OSError as error:
                self._server.lost(self, error)
            return
        self._limit_time(IDLE_MS_MAX)
        self._transport.watch_reading(self, wanted=True)
        if self._head:
            self._limit_time(HEAD_MS_MAX)
            self._server.in_turn(self._take_next)

    def _take_next(self) -> None:
        if not self.closed and self._request is None:
            self._take_request()

    # --- the end ---

    def _limit_time(self, limit_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.after(max(1, limit_ms), self.close)

    def close(self) -> None:
        """Close the socket and drop what is queued for it."""
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending is not None:
            self._pending.abandon()
        self._page = self._body = None
        self._transport.close(self)
        self._server.forget(self)
