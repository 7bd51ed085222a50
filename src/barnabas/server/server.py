"""The server of a broker: accepts connections and runs events on the event loop.

Clients have one listener; in a cluster, other brokers have another. Each listener chooses the
session, and so the protocol, of its connections.

An event is a readable socket, a finished sync or a due timer. Its callback runs to completion in
the node. Then `after_event` sends the answers, passes effects to the driver and arms the next
timer.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, cast

from barnabas.effects import Effect
from barnabas.handlers.registry import serve_itself
from barnabas.handlers.shapes import Shapes
from barnabas.logs import get
from barnabas.model.callers import CLIENT_LISTENER, OPERATOR_LISTENER, Principal
from barnabas.model.callers import Listener as ListenerName
from barnabas.model.errors import SyncFailedError, TooOldError
from barnabas.model.meters import NO_METERS, Meters
from barnabas.model.ports import File
from barnabas.model.timers import Timer
from barnabas.node.node import Node
from barnabas.server import gauges
from barnabas.server.admission import Admission
from barnabas.server.buffered_memory import BufferedMemory
from barnabas.server.buffers import BufferPool
from barnabas.server.closing_log import ClosingLog
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import (
    AcceptedConnection,
    ConnectionOwner,
    OpenSession,
    Session,
    StreamSocket,
)
from barnabas.server.effect_runner import EffectDriver, OnSync, stop_at_once, stop_too_old
from barnabas.server.files.descriptors import LAST_FILES, Shares
from barnabas.server.files.disk import OsFile
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.listener import OPEN_FILES, Listener, RefusedConnections
from barnabas.server.metered_session import MeteredSession
from barnabas.server.peers.peer_links import PeerConnections
from barnabas.server.sasl_session import SaslSession
from barnabas.server.slow_events import SlowEvents, WatchedLoop
from barnabas.server.tls.handshakes import Handshake, Handshakes, Identity, ListenerTls
from barnabas.server.tls.tls_transport import TlsTransport
from barnabas.server.transport import PlainTransport, Transport
from barnabas.server.watched_parts import WatchedSession, WatchedTlsTransport, WatchedTransport

NS_PER_MS = 1_000_000
RECEIVE_BYTES = 256 * 1024
SWEEP_INTERVAL_MS = 1_000
SWEPT_AT_ONCE = 2_000
"""How many connections are checked in one event: 20,000 would take 10 ms."""
SWEEP_PAUSE_MS = 20
OPERATOR_BACKLOG = 64
QUEUED_BYTES_MAX = 1024 * 1024
QUEUED_ANSWERS_MAX = 1000
NO_LIMIT = 1 << 62
FRAMES_PER_EVENT = 256
EVENT_MS_MAX = 2
"""The time for one connection in an event: 1 to 2 ms, by a clock in whole milliseconds that is read
once in an event. A client that pipelines requests delays others by about this. The cost of an extra
event (20 us) is a hundredth of it."""

log = get("barnabas.server")

OpenConnection = Callable[[ConnectionOwner, Transport, str], AcceptedConnection]
"""Takes the server, the transport of an accepted socket, and the host that it comes from."""


class ListenerRole(NamedTuple):
    """The listener of a connection, its limits, and its protocol."""

    open_session: OpenSession
    named: ListenerName
    """The listener in the caller of each request."""
    max_connections: int
    """Connections beyond this number are refused; 0 means no limit."""
    tls: ListenerTls | None = None
    """How its connections are encrypted; None if they are not."""
    open_connection: OpenConnection | None = None
    """Makes the connections of a protocol without length-prefixed frames; None for others."""


class Server:
    """Accepts connections and runs their events.

    `on_sync` is called after each fsync, on the thread that made it.
    """

    serves_clients = False
    """Whether clients are accepted."""
    _operators = 0
    """How many connections operators have."""

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        meters: Meters = NO_METERS,
        on_sync: OnSync | None = None,
    ) -> None:
        performance = node.settings.performance
        self.node, self._meters = node, meters
        self._outbox, self._timers = node.outbox, node.timers
        self._fire: Callable[[], None] = node.timers.fire
        self.slow_events: SlowEvents | None = None
        """The events that took long, if `performance.slow_event_time` is set."""
        if performance.slow_event_ms:
            self.slow_events = events = SlowEvents(performance.slow_event_ms)
            loop = cast("asyncio.AbstractEventLoop", WatchedLoop(loop, events))
            self._fire = partial(node.timers.fire, events.run_timer)
            events.start()
        self.loop = loop
        self.max_request_bytes = performance.max_request_bytes
        self.sendfile_bytes = performance.sendfile_threshold_bytes
        # Attributes of the instance, since each request reads them, and that is faster.
        self.queued_bytes_max, self.queued_answers_max = QUEUED_BYTES_MAX, QUEUED_ANSWERS_MAX
        self.frames_per_event, self.event_ms_max = FRAMES_PER_EVENT, EVENT_MS_MAX
        self.receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        self.memory = BufferedMemory(performance.max_buffered_bytes, self.in_turn)
        self.buffers = BufferPool(performance.max_buffered_bytes)
        self.shapes = Shapes(node)
        self.connections: dict[AcceptedConnection, ListenerName] = {}
        self.dirty: list[AcceptedConnection] = []
        self._turns: deque[Callable[[], None]] = deque()
        self._unswept: list[AcceptedConnection] = []
        self.handshakes = Handshakes(self, node.settings.security.handshake_timeout_ms)
        self.peers = PeerConnections(self)
        self.driver = EffectDriver(node, loop, self.run_event, self.peers, on_sync)
        self._carry_out: Callable[[Sequence[Effect]], None] = self.driver.carry_out
        if self.slow_events is not None:
            self._carry_out = self.slow_events.carrying_out(self.driver.carry_out)
        self._settings = performance
        self._listeners: dict[Listener, ListenerRole] = {}
        self._admission = Admission(performance, node.quotas, loop, self.monotonic_ms)
        self._closing_log, self.refused = (
            ClosingLog(self.monotonic_ms),
            RefusedConnections(loop.time),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self.shares = Shares(NO_LIMIT, NO_LIMIT, 0)
        """How many files and connections may be open."""
        gauges.register(meters, self)
        serve_itself(node)

    def bind(
        self,
        host: str,
        port: int,
        *,
        named: ListenerName = CLIENT_LISTENER,
        open_session: OpenSession | None = None,
        max_connections: int = 0,
        tls: ListenerTls | None = None,
    ) -> tuple[str, int]:
        """Bind a listener to an address; return it, with the port that was found for 0.

        `open_session` chooses the protocol that its clients speak: by default Kafka's.
        """
        receive_buffer_bytes = self._settings.socket_receive_buffer_bytes
        listener = Listener(self.loop, (host, port), receive_buffer_bytes, self.refused)
        opens = open_session or self._open_kafka_session
        self._listeners[listener] = ListenerRole(opens, named, max_connections, tls)
        return listener.address

    def bind_operators(
        self, host: str, port: int, open_connection: OpenConnection, max_connections: int
    ) -> tuple[str, int]:
        """Bind the listener for operators, whose connections count as no client's."""
        listener = Listener(self.loop, (host, port), 0, self.refused)
        self._listeners[listener] = ListenerRole(
            self._open_kafka_session,
            OPERATOR_LISTENER,
            max_connections,
            open_connection=open_connection,
        )
        return listener.address

    def listen_to_operators(self) -> None:
        """Start to accept connections of operators."""
        for listener, role in self._listeners.items():
            if role.named is OPERATOR_LISTENER:
                listener.listen(OPERATOR_BACKLOG, partial(self._admit_operator, role))

    def listen(self, *, peers: bool) -> None:
        """Start to accept clients, or other brokers."""
        self.serves_clients = self.serves_clients or not peers
        for listener, role in self._listeners.items():
            if role.named.is_peer == peers and role.named is not OPERATOR_LISTENER:
                admit = self._admit if peers else self._admit_client
                listener.listen(self._settings.backlog, partial(admit, role))
        if not peers:
            self.node.timers.after(SWEEP_INTERVAL_MS, self._sweep)

    def stop_listening(self) -> None:
        """Stop accepting connections."""
        self.serves_clients = False
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def close_all(self) -> None:
        """Send the answers that are ready and close every connection."""
        for connection in list(self.connections):
            connection.flush()
            connection.close()
        self._admission.close()
        self.peers.close_all()
        if self.slow_events is not None:
            self.slow_events.close()
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def wall_clock_ms() -> int:
        """Return the wall clock, for timestamps."""
        return time.time_ns() // NS_PER_MS

    @staticmethod
    def monotonic_ms() -> int:
        """Return a clock that never jumps, for waits."""
        return time.monotonic_ns() // NS_PER_MS

    @staticmethod
    def monotonic_ns() -> int:
        """Return the same clock for short times."""
        return time.monotonic_ns()

    @staticmethod
    def descriptor_of(file: File) -> int:
        """Return the descriptor of a file."""
        return cast("OsFile", file).descriptor

    def run_event(self, callback: Callable[..., None], *arguments: object) -> None:
        """Set the time, run a callback as an event, then finish the event."""
        timers = self._timers
        timers.now_ms = time.monotonic_ns() // NS_PER_MS
        timers.wall_ms = time.time_ns() // NS_PER_MS
        try:
            callback(*arguments)
        except SyncFailedError as error:
            stop_at_once(error)
        except TooOldError as error:
            stop_too_old(error)
        except Exception:
            # The failure of one event must not stop the loop.
            log.exception("an event failed", callback=getattr(callback, "__qualname__", "?"))
        self.after_event()

    def soon(self, callback: Callable[[], None]) -> None:
        """Run a callback as a separate event, after those that already wait."""
        self.loop.call_soon(self.run_event, callback)

    @property
    def waiting_turns(self) -> int:
        """How many connections wait for their next turn."""
        return len(self._turns)

    def in_turn(self, callback: Callable[[], None]) -> None:
        """Run a callback as a separate event: one of them each time the loop looks at sockets.

        Even if many connections have a backlog, the others wait for only one of them.
        """
        self._turns.append(callback)
        if len(self._turns) == 1:
            self.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.run_event(self._turns[0])
        self._turns.popleft()
        if self._turns:
            self.loop.call_soon(self._next_turn)

    def after_event(self) -> None:
        """Send answers, carry out effects, arm the timer."""
        outbox = self._outbox
        while self.dirty or outbox:
            dirty, self.dirty = self.dirty, []
            for connection in dirty:
                connection.flush()
            if outbox:
                effects = outbox[:]
                outbox.clear()
                self._carry_out(effects)
        timers = self._timers
        if timers.have_changed:
            timers.have_changed = False
            next_ms = timers.next_ms
            if next_ms != self._timer_ms:
                self._arm(next_ms)

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call `on_readable` when bytes arrive, or leave them in the kernel."""
        if wanted:
            self.loop.add_reader(connection.descriptor, self.run_event, connection.on_readable)
        else:
            self.loop.remove_reader(connection.descriptor)

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call `on_writable` when the kernel has room, or stop doing so."""
        if wanted:
            self.loop.add_writer(connection.descriptor, self.run_event, connection.on_writable)
        else:
            self.loop.remove_writer(connection.descriptor)

    def forget(self, connection: AcceptedConnection) -> None:
        """Drop a closing connection."""
        named = self.connections.pop(connection, None)
        if named is OPERATOR_LISTENER:
            self._operators -= 1
        elif named is not None and not named.is_peer:
            self._admission.leave(connection.host, named)

    def hand_over(
        self, connection: AcceptedConnection, successor: AcceptedConnection, event: str
    ) -> None:
        """Log an event, and have another object serve the connection's transport from now on."""
        self._closing_log.write(event, connection.host)
        self.connections[successor] = self.connections.pop(connection)
        self.watch_reading(successor, wanted=True)

    def refuse(self, connection: AcceptedConnection, problem: str) -> None:
        """Close a connection that does not speak the protocol."""
        self._closing_log.write("closed a connection", connection.host, problem=problem)
        connection.flush()  # earlier requests are answered
        connection.close()

    def failed(self, connection: AcceptedConnection, error: Exception) -> None:
        """Close a connection whose request hit a defect of the broker."""
        log.error("a request failed", client=connection.host, exc_info=error)
        connection.close()

    def lost(self, connection: AcceptedConnection, error: OSError) -> None:
        """Close a connection that broke."""
        log.debug("lost a connection", client=connection.host, problem=str(error))
        connection.close()

    def _arm(self, next_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = next_ms
        if next_ms is None:
            self._timer = None
            return
        delay_s = max(0, next_ms - self.monotonic_ms()) / 1000
        self._timer = self.loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer_ms = None
        self._timer = None
        self.run_event(self._fire)

    def _admit_client(self, role: ListenerRole, accepted: socket.socket, host: str) -> int:
        admission = self._admission
        limit = admission.refusal(host, role.named, role.max_connections, len(self.connections))
        if limit is None and self._lacks_files(accepted):
            limit = OPEN_FILES
        if limit is not None:
            accepted.close()
        else:
            limit = admission.slow_down(accepted, host)
        if limit is not None:
            self.refused.note(host, limit)
            return admission.pause_ms()
        admission.enter(host, role.named)
        try:
            self._admit(role, accepted, host)
        except OSError:
            admission.leave(host, role.named)
            raise
        return admission.pause_ms()

    def _admit_operator(self, role: ListenerRole, accepted: socket.socket, host: str) -> int:
        """Admit an operator, also where clients are refused: that is when operators look."""
        if self._operators >= role.max_connections:
            accepted.close()
            self.refused.note(host, "max_connections of listener HTTP")
            return 0
        self._admit(role, accepted, host)
        self._operators += 1
        return 0

    def _lacks_files(self, accepted: socket.socket) -> bool:
        """Tell whether the descriptors that are left are needed for logs."""
        most = self.shares.connections_beside(len(self.node.partitions))
        # The system uses the lowest free number: nearly all below this one are in use.
        is_last = accepted.fileno() >= self.shares.limit - LAST_FILES
        return len(self.connections) >= most or is_last

    def _admit(self, role: ListenerRole, accepted: socket.socket, host: str) -> int:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._settings.socket_send_buffer_bytes:
            size = self._settings.socket_send_buffer_bytes
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        connection: AcceptedConnection
        if role.open_connection is not None:
            connection = role.open_connection(self, self._transport(accepted, host), host)
        elif role.tls is None:
            transport = self._transport(accepted, host)
            connection = Connection(self, transport, host, role.open_session, role.named)
        else:
            connection = self.handshakes.begin(accepted, host, role, role.tls)
        self.connections[connection] = role.named
        self.watch_reading(connection, wanted=True)
        return 0

    def begin_secured(
        self, handshake: Handshake, secured: ssl.SSLSocket, identity: Identity
    ) -> None:
        """Replace a completed handshake by a connection."""
        transport = self._secured_transport(secured, handshake.host, identity.principal)
        role = handshake.role
        connection = Connection(self, transport, handshake.host, role.open_session, role.named)
        del self.connections[handshake]
        self.connections[connection] = role.named
        self.watch_reading(connection, wanted=True)
        transport.serve(connection, self._until_expiry(connection, identity), handshake.memory)

    def _secured_transport(
        self, secured: ssl.SSLSocket, host: str, principal: Principal | None
    ) -> TlsTransport:
        if self.slow_events is None:
            return TlsTransport(self, secured, principal)
        return WatchedTlsTransport(self.slow_events, self, secured, host, principal)

    def _until_expiry(self, connection: Connection, identity: Identity) -> Timer | None:
        """End a client's connection when the certificate that it was opened with expires.

        Those of other brokers stay open: an expired certificate must not fence a broker.
        """
        if identity.certificate is None or connection.peer:
            return None
        timers = self._timers
        left_ms = max(0, identity.certificate.not_after_ms - timers.wall_ms)
        problem = "the client's certificate has expired"
        return timers.after(left_ms, lambda: self.refuse(connection, problem))

    def _transport(self, accepted: StreamSocket, host: str) -> Transport:
        if self.slow_events is None:
            return PlainTransport(self, accepted)
        return WatchedTransport(self.slow_events, self, accepted, host)

    def _open_kafka_session(self, connection: Connection) -> Session:
        meters, served = self._meters, KafkaSession(self, connection)
        if meters.is_collecting:
            served = MeteredSession(meters, self, connection)
        transport = connection.transport
        if isinstance(transport, TlsTransport) and transport.principal is not None:
            served.authenticate(transport.principal)
        session: Session = served
        if connection.listener.has_sasl:
            session = SaslSession(self, connection, served)
        if self.slow_events is None:
            return session
        return WatchedSession(self.slow_events, session, connection.host)

    def _sweep(self) -> None:
        """Close connections that are idle, or stalled within a request or an answer."""
        now_ms = self.node.timers.now_ms
        idle_ms, stall_ms = self._settings.connection_idle_ms, self._settings.request_stall_ms
        if not self._unswept:
            self.peers.sweep(now_ms)
            self.handshakes.sweep(now_ms)
            self._unswept = list(self.connections)
        swept = self._unswept[-SWEPT_AT_ONCE:]
        del self._unswept[-SWEPT_AT_ONCE:]
        pause_ms = SWEEP_PAUSE_MS if self._unswept else SWEEP_INTERVAL_MS
        self.node.timers.after(pause_ms, self._sweep)
        for connection in swept:
            since_ms = connection.stalled_since_ms
            if connection.closed or connection.is_muted:
                continue
            if since_ms is not None and now_ms - since_ms > connection.patience_ms(stall_ms):
                self.refuse(connection, "the client stalled within a request or an answer")
            elif now_ms - connection.last_progress_ms > idle_ms:
                log.debug("closed an idle connection", client=connection.host)
                connection.close()
