"""The base class of simulated clients: a dialogue, written as a generator.

    answer = yield from self.ask(request, version)      # None where the connection broke
    yield Sleep(100)

Who has to be asked is found out on the way (`sim/clients/routing.py`); there is a connection to
each broker that was. An actor may be paused (it hears and says nothing for a while), crash and come
back. What it does in one turn happens at once, as far as the others can see.
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


class Asked(NamedTuple):
    """A request that waits for its answer."""

    api_key: int
    version: int
    correlation_id: int


class Line:
    """A connection to one broker, and what is said on it."""

    def __init__(self, actor: "Actor", host: Host) -> None:
        self.host = host
        self.asked: deque[Asked] = deque()
        self.answers: deque[Answer] = deque()
        self._actor = actor
        self.link = Link(
            actor.world,
            host,
            actor.name,
            self._hear,
            self._lost,
            may_be_late=actor.may_be_late,
        )

    def send(self, asked: Asked, frame: bytes) -> None:
        """Send a request."""
        self.asked.append(asked)
        self.link.send(frame)

    def _hear(self, content: bytes) -> None:
        if not self._actor.uses(self):
            return
        key, version, correlation_id = self.asked.popleft()
        head = response_header(key, version, correlation_id)
        if not content.startswith(head):
            raise InvariantError(f"{self._actor.name} hears an answer to another question")
        answer = decode_exact(response_class(key), version, content[len(head) :])
        self.answers.append(answer)
        self._actor.heard(self, answer)

    def _lost(self) -> None:
        if self._actor.uses(self):
            self._actor.lost(self)


class Actor:
    """One client process. Subclasses say what it does in `life`."""

    def __init__(self, world: World, cluster: Cluster, name: str) -> None:
        self.world = world
        self.cluster = cluster
        self.name = name
        self.rng = world.rng
        self.may_be_late = True
        """Whether requests of its may arrive after it has made another connection."""
        self.closing = False
        """Whether it should come to an end."""
        self.done = False
        self.lives = 0
        self.routes = Routes(cluster)
        self._talk: Talk | None = None
        self._turn = 0
        self._paused_until_ms = 0
        self._lines: dict[Host, Line] = {}
        self._line: Line | None = None
        """The one that was used last: where the next answer is expected."""
        self._receiving = False
        self._correlation_id = 0
        self.last_asked = cluster.hosts[0]
        self.last_life = 0
        """In which life the broker was that was asked last, and answers if any does."""

    @property
    def is_asking(self) -> bool:
        """Whether it waits for an answer."""
        return self._line is not None and bool(self._line.asked)

    def life(self) -> Talk:
        """What the client does until it ends."""
        raise NotImplementedError

    def died(self) -> None:
        """Forget what a process forgets when it dies."""

    def start(self) -> None:
        """Begin a life."""
        self.lives += 1
        self.done = False
        self._talk = self.life()
        self._resume(self._turn, None)

    def crash(self, return_after_ms: int) -> None:
        """Die, and come back after a while."""
        if self._talk is None or self.done:
            return
        self.world.note(self.name, f"crashes for {return_after_ms} ms")
        self._drop_lines()
        self._turn += 1
        self._talk.close()
        self._talk = None
        self._paused_until_ms = 0
        self.routes.forget_all()
        self.died()
        self.world.after(return_after_ms, self.start)

    def pause(self, duration_ms: int) -> None:
        """Stand still."""
        if not self.done:
            self.world.note(self.name, f"stands still for {duration_ms} ms")
            self._paused_until_ms = self.world.now_ms + duration_ms

    def lose_connection(self) -> None:
        """Have the connection break."""
        if self._line is not None and self._line.link.is_open:
            self.world.note(self.name, "loses its connection")
            self._line.link.cut()

    def ask(
        self, request: Message, version: int | None = None, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Asking:
        """Send a request to whom it concerns, and wait; the answer is None where none came."""
        host = yield from self.find_host(request)
        if host is None:
            yield Sleep(RECONNECT_MS)
            return None
        answer = yield from self._ask_at(host, request, version, timeout_ms)
        self.routes.learn(request, answer)
        return answer

    def find_host(self, request: Message) -> Asking:
        """Return the broker that a request is for; None where nobody knows it now."""
        return (yield from self.routes.find(self._ask_at, request))

    def send(self, host: Host, request: Message, version: int | None = None) -> bool:
        """Send a request without waiting; return whether there is a connection for it."""
        line = self._connected(host)
        if line is None:
            return False
        key = KEYS[type(request).__name__]
        chosen = SERVED[key].high if version is None else version
        self._correlation_id += 1
        self.world.tell(self.name, lambda: f"-> {host.name} v{chosen} {brief(request)}")
        body = encoder(type(request), chosen)(request)
        frame = frame_of(key, chosen, self._correlation_id, self.name, body)
        self._line, self.last_asked, self.last_life = line, host, host.life
        line.send(Asked(key, chosen, self._correlation_id), frame)
        return True

    def uses(self, line: Line) -> bool:
        """Tell whether a line is one that it still has."""
        return self._lines.get(line.host) is line

    def heard(self, line: Line, answer: Answer) -> None:
        """Hear an answer, and go on where it was waited for."""
        self.world.tell(self.name, lambda: f"<- {line.host.name} {brief(answer)}")
        if self._receiving and line is self._line:
            self._resume(self._turn, line.answers.popleft())

    def lost(self, line: Line) -> None:
        """Learn that a connection is gone."""
        del self._lines[line.host]
        line.asked.clear()
        if self._receiving and line is self._line:
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

    def _connected(self, host: Host) -> Line | None:
        line = self._lines.get(host)
        if line is not None and line.link.is_open:
            return line
        if not host.serves:
            return None
        line = self._lines[host] = Line(self, host)
        return line

    def _drop_lines(self) -> None:
        lines, self._lines, self._line = self._lines, {}, None
        for line in lines.values():
            line.link.cut()

    def _drop_line(self) -> None:
        line, self._line = self._line, None
        if line is not None and self.uses(line):
            del self._lines[line.host]
            line.link.cut()

    def _resume(self, turn: int, value: Answer) -> None:
        """Take a turn, unless it was given up; later, where the client stands still."""
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
            self._drop_lines()
            self.world.note(self.name, "is done")
            return
        self._wait(step)

    def _wait(self, step: Sleep | Receive) -> None:
        turn, line = self._turn, self._line
        if isinstance(step, Sleep):
            self.world.after(step.duration_ms, lambda: self._resume(turn, None))
        elif line is not None and line.answers:
            answer = line.answers.popleft()
            self.world.after(0, lambda: self._resume(turn, answer))
        elif line is None or not self.uses(line):
            self.world.after(0, lambda: self._resume(turn, None))
        else:
            self._receiving = True
            self.world.after(step.timeout_ms, lambda: self._time_out(turn))

    def _time_out(self, turn: int) -> None:
        if turn == self._turn and self._receiving:
            self.world.note(self.name, "gives up waiting for an answer")
            self._drop_line()
            self._resume(turn, None)
