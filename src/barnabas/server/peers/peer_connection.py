"""One connection from this broker to another: requests out, answers in, in order.

    looking up a name -> connecting -> (TLS handshake) -> asking for versions -> open -> closed

The first request is ApiVersions; the others wait for its answer, and are sent in a version that
both brokers know. Requests are pipelined and answered in order; the correlation id proves it. Any
error closes the connection, and each request that still waits gets None as its answer. A request
that is not answered in time closes the connection too, since later answers cannot arrive before its
own.

A refused port means that the other broker's process is gone (`node/cluster/broker_probing.py`). A
handshake that fails, or a connection that ends before the first answer, does not: an expired
certificate must not fence a broker. So these are reported after a pause. The pause tells a probe
that the port was not refused, and keeps this broker from trying again at once.
"""

import errno
import os
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any

from barnabas.effects import Address, Ask
from barnabas.logs import get
from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.model.timers import Timer
from barnabas.node.cluster.broker_probing import QUICKLY_MS
from barnabas.protocol.apis import APIS
from barnabas.protocol.headers import API_VERSIONS
from barnabas.protocol.primitives import skip_tags
from barnabas.server.peers.peer_versions import (
    ENVELOPE,
    NOT_SERVED,
    VERSION,
    Versions,
    hello_body,
    served_versions,
)
from barnabas.server.tls.tls_stream import TlsStream

if TYPE_CHECKING:
    from barnabas.server.peers.peer_links import PeerConnections
    from barnabas.server.server import Server

JOIN_BYTES_MAX = 256 * 1024
REPLY_BYTES_MIN = 4
QUORUM_LANES = "raft"
"""How the names of the metadata quorum's lanes begin."""
PAUSE_MS = 5 * QUICKLY_MS
"""The delay before the end of a connection that was never used is reported."""
HELLO_TIMEOUT_MS = 2_000
"""How long the other broker may take to say which versions it serves."""

_LENGTH = Struct(">i")
_REQUEST_HEAD = Struct(">ihhih")
"""Length, API key, version, correlation id, length of the client id."""
_CORRELATION_ID = Struct(">i")

log = get("barnabas.server")

Place = tuple[int, tuple[Any, ...]]
"""An address family, and an address in the form of its sockets."""


class Question:
    """A request that waits for its answer, or to be sent."""

    __slots__ = ("ask", "correlation_id", "timer")

    def __init__(self, ask: Ask, timer: Timer) -> None:
        self.ask = ask
        self.correlation_id = 0
        self.timer = timer


class PeerConnection:
    """One lane to one broker."""

    def __init__(
        self, server: "Server", connections: "PeerConnections", key: tuple[Address, str]
    ) -> None:
        self.key = key
        self.is_of_quorum = key[1].startswith(QUORUM_LANES)
        self.last_used_ms = server.node.timers.now_ms
        self.closed = False
        self._server = server
        self._connections = connections
        self._address = key[0]
        self._client_id = f"broker-{server.node.node_id}".encode()
        self._places: list[Place] = []
        self._socket: socket.socket | TlsStream | None = None
        self._tls: TlsStream | None = None
        """The same socket with TLS, once the handshake has begun."""
        self._descriptor = -1
        self._is_ending = False
        self._open = False
        self._writing = False
        self._correlation_id = 0
        self._out: deque[Buffer] = deque()
        self._questions: deque[Question] = deque()
        self._unsent: deque[Question] = deque()
        """Until it is known which versions the other broker serves."""
        self._versions: Versions | None = None
        self._head = bytearray()
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0

    @property
    def waits(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._questions or self._unsent)

    # --- making the connection ---

    def connect(self) -> None:
        """Begin to connect; names are looked up on a thread."""
        host, port = self._address
        try:
            family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        except ValueError:
            self._look_up(host, port)
            return
        self._places = [(family, (host, port))]
        self._connect_next("no address")

    def _look_up(self, host: str, port: int) -> None:
        loop, run_event = self._server.loop, self._server.run_event

        def look_up() -> None:
            places, problem = list[Place](), "its name resolves to no address"
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                places = [(family, place) for family, _, _, _, place in found]
            except OSError as error:
                problem = f"its name cannot be resolved: {error.strerror}"
            with suppress(RuntimeError):  # the loop is closed: the broker is stopping
                loop.call_soon_threadsafe(run_event, self._found, places, problem)

        # A daemon, since the system's resolver cannot be interrupted when the broker stops.
        threading.Thread(target=look_up, name="resolver", daemon=True).start()

    def _found(self, places: list[Place], problem: str) -> None:
        if not self.closed:
            self._places = places
            self._connect_next(problem)

    def _connect_next(self, problem: str) -> None:
        """Try the next address that the name resolves to."""
        while self._places:
            family, place = self._places.pop(0)
            try:
                self._begin(family, place)
            except OSError as error:
                problem = error.strerror or str(error)
                self._close_socket()
                continue
            return
        # As a separate event: the caller is still in the middle of its event.
        self._server.soon(lambda: self.close(problem))

    def _begin(self, family: int, place: tuple[Any, ...]) -> None:
        made = self._socket = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel may choose a local port on which a broker will listen soon.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        settings = self._server.node.settings.performance
        if settings.socket_receive_buffer_bytes:
            size = settings.socket_receive_buffer_bytes
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        self._descriptor = made.fileno()
        result = made.connect_ex(place)
        if result not in (0, errno.EINPROGRESS):
            raise OSError(result, os.strerror(result))
        self._writing = True
        self._server.loop.add_writer(self._descriptor, self._server.run_event, self._on_connected)

    def _on_connected(self) -> None:
        assert isinstance(self._socket, socket.socket)
        problem = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not problem and self._socket.getsockname() == self._socket.getpeername():
            # No broker listens, and the kernel chose the same port: it is connected to itself.
            problem = errno.ECONNREFUSED
        if problem:
            self._close_socket()
            self._connect_next(os.strerror(problem))
            return
        self._set_writing(wanted=False)
        contexts = self._connections.tls
        if contexts is None:
            self._begin_requests()
            return
        assert contexts.connecting is not None
        try:
            self._tls = TlsStream(contexts.connecting, self._socket, self._address.host)
        except OSError as error:
            self._end_unused(str(error))
            return
        self._socket = self._tls
        self._shake_hands()

    def _shake_hands(self) -> None:
        """Continue the TLS handshake."""
        assert self._tls is not None
        loop, run_event = self._server.loop, self._server.run_event
        loop.remove_reader(self._descriptor)
        loop.remove_writer(self._descriptor)
        try:
            self._tls.shake_hands()
        except ssl.SSLWantReadError:
            loop.add_reader(self._descriptor, run_event, self._shake_hands)
        except ssl.SSLWantWriteError:
            loop.add_writer(self._descriptor, run_event, self._shake_hands)
        except OSError as error:
            self._connections.warn_of_tls(self._address, error)
            self._end_unused(str(error))
        else:
            self._begin_requests()

    def _end_unused(self, problem: str) -> None:
        """Close a connection that was never used, after a pause."""
        if self._is_ending or self.closed:
            return
        self._is_ending = True
        self._close_socket()
        self._server.node.timers.after(PAUSE_MS, lambda: self.close(problem))

    def _begin_requests(self) -> None:
        """Ask for versions; the connection can be used."""
        self._open = True
        loop, run_event = self._server.loop, self._server.run_event
        loop.add_reader(self._descriptor, run_event, self._on_readable)
        self._send(self._timed(self._hello()))
        self.flush()

    # --- asking ---

    def queue(self, ask: Ask) -> None:
        """Queue a request."""
        question = self._timed(ask)
        self.last_used_ms = self._server.node.timers.now_ms
        if self._versions is None:
            self._unsent.append(question)
        else:
            self._send_served(question, self._versions)

    def _timed(self, ask: Ask) -> Question:
        timers = self._server.node.timers
        question = Question(ask, timers.after(ask.timeout_ms, lambda: self._time_out(question)))
        return question

    def _time_out(self, question: Question) -> None:
        """Close the connection, or fail one request if the versions are not known yet.

        On a slow link ApiVersions may take longer than other requests may wait. The connection
        stays open for it; otherwise each connection would be closed before it can be used.
        """
        if self._open and question in self._unsent:
            self._unsent.remove(question)
            self._connections.lost += 1
            _report(question.ask.done, None)
        else:
            self.close("it did not answer in time")

    def _hello(self) -> Ask:
        """Return the request that begins the connection."""
        address, lane = self.key
        return Ask(
            address,
            lane,
            API_VERSIONS,
            VERSION,
            hello_body(),
            HELLO_TIMEOUT_MS,
            self._learn_versions,
        )

    def _learn_versions(self, body: memoryview | None) -> None:
        """Store which versions the other broker serves, and send the waiting requests."""
        if body is None:
            return  # the connection is closed
        try:
            self._versions = served_versions(body)
        except WireError as error:
            self.close(str(error))
            return
        waiting, self._unsent = self._unsent, deque()
        for question in waiting:
            self._send_served(question, self._versions)
        self.flush()

    def _send_served(self, question: Question, versions: Versions) -> None:
        """Send a request in a version that the other broker serves, or report that none is."""
        ask = question.ask
        low, high = versions.get(ask.api_key, NOT_SERVED)
        if ask.needs_envelope and ENVELOPE not in versions:
            log.warning("a peer does not serve Envelope", peer=str(self._address))
            self._server.soon(lambda: _report(ask.done, None))
            question.timer.cancel()
            return
        if low <= ask.api_version <= high:
            if ENVELOPE in versions:
                question.ask = ask.enveloped()
            self._send(question)
            return
        if ask.for_versions is None:
            facts = {"peer": str(self._address), "api": APIS[ask.api_key].name}
            log.warning(
                "a peer does not serve a request's version", version=ask.api_version, **facts
            )
            self._server.soon(lambda: _report(ask.done, None))
        elif (other := _translated(ask.for_versions, low, high)) is not None:
            question.ask = other.enveloped() if ENVELOPE in versions else other
            self._send(question)
            return
        question.timer.cancel()

    def _send(self, question: Question) -> None:
        ask = question.ask
        number = self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        question.correlation_id = number
        self._questions.append(question)
        flexible = b"\0" if ask.api_version >= APIS[ask.api_key].flexible_from else b""
        size = _REQUEST_HEAD.size - 4 + len(self._client_id) + len(flexible) + len(ask.body)
        head = _REQUEST_HEAD.pack(size, ask.api_key, ask.api_version, number, len(self._client_id))
        self._out.append(head + self._client_id + flexible)
        self._out.append(ask.body)

    def flush(self) -> None:
        """Send as much as the kernel takes."""
        if not self._open or self.closed:
            return
        assert self._socket is not None
        joined: Buffer = b""
        try:
            if self._tls is not None:
                self._tls.send_unsent()
            while self._out:
                joined = self._join()
                sent = self._socket.send(joined)
                self._connections.bytes_out += sent
                if self.is_of_quorum:
                    self._connections.quorum_bytes_out += sent
                if sent < len(joined):
                    self._out.appendleft(memoryview(joined)[sent:])
                    break
        except BlockingIOError:
            if joined:
                self._out.appendleft(joined)
        except OSError as error:
            self._server.soon(lambda problem=error: self._fail(problem))  # type: ignore[misc]
            return
        self._set_writing(wanted=bool(self._out) or self._has_unsent)

    @property
    def _has_unsent(self) -> bool:
        return self._tls is not None and self._tls.has_unsent

    def _join(self) -> Buffer:
        """Remove from the queue the requests that are sent together."""
        parts, size = [], 0
        while self._out and size < JOIN_BYTES_MAX:
            parts.append(self._out.popleft())
            size += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _set_writing(self, *, wanted: bool) -> None:
        if wanted == self._writing:
            return
        self._writing = wanted
        loop = self._server.loop
        if wanted:
            loop.add_writer(self._descriptor, self._server.run_event, self.flush)
        else:
            loop.remove_writer(self._descriptor)

    # --- answers ---

    def _on_readable(self) -> None:
        try:
            if self._frame is None:
                self._read_shared()
            else:
                self._read_own(self._frame)
        except BlockingIOError:
            return
        except (OSError, WireError) as error:
            self._fail(error)
            return
        if self._tls is not None and not self.closed and self._tls.has_unread:
            self._server.soon(self._read_more)

    def _read_more(self) -> None:
        """Read what OpenSSL has, which the kernel does not report."""
        if self._open and not self.closed:
            self._on_readable()

    def _fail(self, error: Exception) -> None:
        """Close the connection; one that was never used after a pause."""
        if self._versions is not None or isinstance(error, WireError):
            self.close(str(error))
            return
        if isinstance(error, ssl.SSLError):  # in TLS 1.3 the other end refuses only now
            self._connections.warn_of_tls(self._address, error)
        self._end_unused(str(error))

    def _read_shared(self) -> None:
        """Read into the shared buffer; whole answers are handled in place."""
        assert self._socket is not None
        shared, kept = self._server.receive_buffer, len(self._head)
        count = self._socket.recv_into(shared[kept:])
        if count == 0:
            raise ConnectionError("it closed the connection")
        self._count(count)
        shared[:kept] = self._head
        self._head.clear()
        self._take(shared, kept + count)

    def _take(self, received: memoryview, count: int) -> None:
        position = 0
        while count - position >= 4 and not self.closed:
            (size,) = _LENGTH.unpack_from(received, position)
            self._check_size(size)
            end = position + 4 + size
            if end > count:
                self._begin_frame(size, received[position + 4 : count])
                return
            self._handle_answer(received[position + 4 : end])
            position = end
        self._head += received[position:count]

    def _begin_frame(self, size: int, beginning: memoryview) -> None:
        """Move a partial answer into its own buffer, large enough for all of it."""
        self._frame = self._server.buffers.take(size)
        self._frame_bytes, self._filled = size, len(beginning)
        self._frame[: len(beginning)] = beginning

    def _read_own(self, frame: bytearray) -> None:
        assert self._socket is not None
        while self._filled < self._frame_bytes:
            with memoryview(frame)[self._filled : self._frame_bytes] as room:
                count = self._socket.recv_into(room)
            if count == 0:
                raise ConnectionError("it closed the connection within an answer")
            self._count(count)
            self._filled += count
        self._frame = None
        view = memoryview(frame)
        try:
            self._handle_answer(view[: self._frame_bytes])
        finally:
            view.release()
            self._server.buffers.give_back(frame)

    def _count(self, received: int) -> None:
        self.last_used_ms = self._server.node.timers.now_ms
        self._connections.bytes_in += received
        if self.is_of_quorum:
            self._connections.quorum_bytes_in += received

    def _check_size(self, size: int) -> None:
        settings = self._server.node.settings.performance
        largest = settings.max_request_bytes + settings.max_fetch_bytes
        if not REPLY_BYTES_MIN <= size <= largest:
            raise WireError(
                f"response length {size} is not between {REPLY_BYTES_MIN} and {largest}"
            )

    def _handle_answer(self, content: memoryview) -> None:
        """Report an answer to its caller."""
        (number,) = _CORRELATION_ID.unpack_from(content)
        if not self._questions or self._questions[0].correlation_id != number:
            raise WireError(f"unexpected correlation id {number} in a response")
        body = content[_body_at(self._questions[0].ask, content) :]
        question = self._questions.popleft()
        question.timer.cancel()
        if self._versions is not None:
            self._connections.answered += 1
            self._connections.quorum_answered += self.is_of_quorum
        _report(question.ask.done, body)

    # --- the end ---

    def close(self, problem: str) -> None:
        """Close the connection; each request that still waits gets None as its answer."""
        if self.closed:
            return
        questions = [*self._questions, *self._unsent]
        if questions:
            log.debug("lost a peer", peer=str(self._address), lane=self.key[1], problem=problem)
        self.drop()
        for question in questions:
            if question.ask.done != self._learn_versions:
                self._connections.lost += 1
            _report(question.ask.done, None)

    def drop(self) -> None:
        """Close the connection without reporting to callers."""
        self.closed = True
        self._connections.forget(self)
        self._close_socket()
        for question in (*self._questions, *self._unsent):
            question.timer.cancel()
        self._questions.clear()
        self._unsent.clear()
        self._out.clear()
        self._head.clear()
        self._frame = None

    def _close_socket(self) -> None:
        if self._socket is None:
            return
        if self._open or self._tls is not None:
            self._server.loop.remove_reader(self._descriptor)
        if self._tls is not None:
            self._server.loop.remove_writer(self._descriptor)
        self._set_writing(wanted=False)
        self._open = False
        self._socket.close()
        self._socket = self._tls = None


def _body_at(ask: Ask, content: memoryview) -> int:
    """Return where the body of an answer begins."""
    if ask.api_version < APIS[ask.api_key].flexible_from or ask.api_key == API_VERSIONS:
        return 4
    try:
        return 5 if content[4] == 0 else skip_tags(content, 4, len(content))
    except (struct_error, IndexError):
        raise WireError("an answer ends within its header") from None


def _translated(for_versions: Callable[[int, int], Ask | None], low: int, high: int) -> Ask | None:
    """Return a request in another version; an error of one caller does not affect others."""
    try:
        return for_versions(low, high)
    except Exception:
        log.exception("an event failed", callback="Ask.for_versions")
        return None


def _report(done: Callable[[memoryview | None], None], body: memoryview | None) -> None:
    """Report to one caller; its error does not affect others."""
    try:
        done(body)
    except Exception:
        log.exception("an event failed", callback="Ask.done")
