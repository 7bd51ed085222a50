"""The base class of simulated clients: a dialogue, written as a generator.

    answer = yield from self.ask(request, version)      # None if the connection broke
    yield Sleep(100)

The client finds the broker for each request (`sim/clients/routing.py`), and keeps one connection to
each broker. An actor may be paused (it handles and sends nothing for a while), crash and restart.
What it does in one step happens at once for all others.
"""

from collections import deque
from typing import NamedTuple

from barnabas.handlers.registry import SERVED
from barnabas.protocol.apis import KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.sim.clients.dialogue import REQUEST_TIMEOUT_MS, Answer, Asking, Receive, Sleep, Talk
from barnabas.sim.clients.routing import Routes
from barnabas.sim.frames import frame_of
from barnabas.sim.host import Host
from barnabas.sim.network import Link
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.trace_text import brief
from barnabas.sim.world import InvariantError, World

__all__ = ["Actor", "Answer", "Asking", "Receive", "Sleep", "Talk"]

RECONNECT_MS = 50
CORRELATION_ID_BYTES = 4


class Asked(NamedTuple):
    """A request that waits for its response."""

    api_key: int
    version: int
    correlation_id: int
    request: Message
    sent_ms: int


class BrokerConnection:
    """A connection to one broker, with its pending requests."""

    def __init__(self, actor: "Actor", host: Host) -> None:
        self.host = host
        self.asked: deque[Asked] = deque()
        self.answers: deque[Answer] = deque()
        self._actor = actor
        self.link = Link(
            actor.world,
            host,
            actor.name,
            self._on_response,
            self._lost,
            may_arrive_late=actor.may_arrive_late,
        )
        self.link.principal = actor.principal
        self._unanswered: dict[int, Asked] = {}
        """Requests that the broker has not answered, if the client's checks watch the broker."""
        if actor.watches_broker:
            self.link.on_answered = self._answered_by_broker

    def send(self, asked: Asked, frame: bytes) -> None:
        """Send a request."""
        self.asked.append(asked)
        if self._actor.watches_broker:
            self._unanswered[asked.correlation_id] = asked
        self.link.send(frame)

    def _on_response(self, content: bytes) -> None:
        if not self._actor.is_current_connection(self):
            return
        key, version, correlation_id, request, sent_ms = self.asked.popleft()
        head = response_header(key, version, correlation_id)
        if not content.startswith(head):
            raise InvariantError(f"{self._actor.name} got a response to another request")
        answer = decode_exact(response_class(key), version, content[len(head) :])
        actor = self._actor
        actor.cluster.on_answer(self.host, actor.principal, request, answer, sent_ms)
        self.answers.append(answer)
        self._actor.on_response(self, answer)

    def _answered_by_broker(self, content: bytes) -> None:
        asked = self._unanswered.pop(int.from_bytes(content[:CORRELATION_ID_BYTES]))
        head = response_header(asked.api_key, asked.version, asked.correlation_id)
        kind = response_class(asked.api_key)
        answer = decode_exact(kind, asked.version, content[len(head) :])
        self._actor.answered_by_broker(self, asked, answer)

    def _lost(self) -> None:
        if self._actor.is_current_connection(self):
            self._actor.lost(self)


class Actor:
    """A client process. Subclasses define what it does in `life`."""

    watches_broker = False
    """Whether checks look at each response when the broker sends it."""

    def __init__(self, world: World, cluster: Cluster, name: str) -> None:
        self.world = world
        self.cluster = cluster
        self.name = name
        self.rng = world.rng
        self.may_arrive_late = True
        """Whether requests may arrive after the client has reconnected."""
        self.principal = cluster.operator
        """The principal of its connections; None for an anonymous client."""
        self.closing = False
        """Whether the client should end."""
        self.done = False
        self.lives = 0
        self.routes = Routes(cluster)
        self._talk: Talk | None = None
        self._turn = 0
        self._paused_until_ms = 0
        self._connections: dict[Host, BrokerConnection] = {}
        self._last_connection: BrokerConnection | None = None
        """The connection that was used last, on which the next response is expected."""
        self._receiving = False
        self._correlation_id = 0
        self.last_broker = cluster.hosts[0]
        self.last_life = 0
        """The life of the last broker that the client sent a request to."""

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for a response."""
        return self._last_connection is not None and bool(self._last_connection.asked)

    def life(self) -> Talk:
        """The steps of the client until it ends."""
        raise NotImplementedError

    def died(self) -> None:
        """Forget the state that a process loses when it dies."""

    def start(self) -> None:
        """Start the process."""
        self.lives += 1
        self.done = False
        self._talk = self.life()
        self._resume(self._turn, None)

    def crash(self, return_after_ms: int) -> None:
        """Crash, and restart after a while."""
        if self._talk is None or self.done:
            return
        self.world.note(self.name, f"crashes for {return_after_ms} ms")
        self._drop_connections()
        self._turn += 1
        self._talk.close()
        self._talk = None
        self._paused_until_ms = 0
        self.routes.forget_all()
        self.died()
        self.world.after(return_after_ms, self.start)

    def pause(self, duration_ms: int) -> None:
        """Pause the process."""
        if not self.done:
            self.world.note(self.name, f"is paused for {duration_ms} ms")
            self._paused_until_ms = self.world.now_ms + duration_ms

    def lose_connection(self) -> None:
        """Break the connection."""
        if self._last_connection is not None and self._last_connection.link.is_open:
            self.world.note(self.name, "loses its connection")
            self._last_connection.link.cut()

    def ask(
        self, request: Message, version: int | None = None, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Asking:
        """Send a request to the right broker, and wait; the result is None if no response came."""
        host = yield from self.find_host(request)
        if host is None:
            yield Sleep(RECONNECT_MS)
            return None
        answer = yield from self._ask_at(host, request, version, timeout_ms)
        self.routes.learn(request, answer)
        return answer

    def find_host(self, request: Message) -> Asking:
        """Return the broker for a request, or None if it is not known now."""
        return (yield from self.routes.find(self._ask_at, request))

    def send(self, host: Host, request: Message, version: int | None = None) -> bool:
        """Send a request without waiting; return whether there was a connection."""
        line = self._connected(host)
        if line is None:
            return False
        key = KEYS[type(request).__name__]
        chosen = SERVED[key].high if version is None else version
        self._correlation_id += 1
        self.world.note_lazily(self.name, lambda: f"-> {host.name} v{chosen} {brief(request)}")
        body = encoder(type(request), chosen)(request)
        frame = frame_of(key, chosen, self._correlation_id, self.name, body)
        self._last_connection, self.last_broker, self.last_life = line, host, host.life
        asked = Asked(key, chosen, self._correlation_id, request, self.world.now_ms)
        line.send(asked, frame)
        return True

    def is_current_connection(self, line: BrokerConnection) -> bool:
        """Return whether a connection is still in use."""
        return self._connections.get(line.host) is line

    def on_response(self, line: BrokerConnection, answer: Answer) -> None:
        """Handle a response, and resume the client if it waits for it."""
        self.world.note_lazily(self.name, lambda: f"<- {line.host.name} {brief(answer)}")
        if self._receiving and line is self._last_connection:
            self._resume(self._turn, line.answers.popleft())

    def answered_by_broker(self, line: BrokerConnection, asked: Asked, answer: Answer) -> None:
        """Check a response that the broker sends, whether or not it arrives."""

    def lost(self, line: BrokerConnection) -> None:
        """Handle the loss of a connection."""
        del self._connections[line.host]
        line.asked.clear()
        if self._receiving and line is self._last_connection:
            self._resume(self._turn, None)

    def _ask_at(
        self,
        host: Host,
        request: Message,
        version: int | None = None,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> Asking:
        if not self.send(host, request, version):
            yield Sleep(RECONNECT_MS)
            return None
        answer = yield Receive(timeout_ms)
        if answer is None:
            yield Sleep(self.rng.randint(1, RECONNECT_MS))
        return answer

    def _connected(self, host: Host) -> BrokerConnection | None:
        line = self._connections.get(host)
        if line is not None and line.link.is_open:
            return line
        if not host.accepts_clients:
            return None
        line = self._connections[host] = BrokerConnection(self, host)
        return line

    def _drop_connections(self) -> None:
        lines, self._connections, self._last_connection = self._connections, {}, None
        for line in lines.values():
            line.link.cut()

    def _drop_connection(self) -> None:
        line, self._last_connection = self._last_connection, None
        if line is not None and self.is_current_connection(line):
            del self._connections[line.host]
            line.link.cut()

    def _resume(self, turn: int, value: Answer) -> None:
        """Take a step, unless the wait was abandoned; if the client is paused, take it later."""
        if turn != self._turn or self._talk is None:
            return
        self._receiving = False
        waits_ms = self._paused_until_ms - self.world.now_ms
        if waits_ms > 0:
            self._turn += 1
            again = self._turn
            self.world.after(waits_ms, lambda: self._resume(again, value))
            return
        self._turn += 1
        try:
            step = self._talk.send(value)
        except StopIteration:
            self.done = True
            self._drop_connections()
            self.world.note(self.name, "is done")
            return
        self._wait(step)

    def _wait(self, step: Sleep | Receive) -> None:
        turn, line = self._turn, self._last_connection
        if isinstance(step, Sleep):
            self.world.after(step.duration_ms, lambda: self._resume(turn, None))
        elif line is not None and line.answers:
            answer = line.answers.popleft()
            self.world.after(0, lambda: self._resume(turn, answer))
        elif line is None or not self.is_current_connection(line):
            self.world.after(0, lambda: self._resume(turn, None))
        else:
            self._receiving = True
            self.world.after(step.timeout_ms, lambda: self._time_out(turn))

    def _time_out(self, turn: int) -> None:
        if turn == self._turn and self._receiving:
            self.world.note(self.name, "gives up waiting for an answer")
            self._drop_connection()
            self._resume(turn, None)
