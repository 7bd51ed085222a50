"""A client: a dialogue written as a generator, which the world plays.

    answer = yield from self.ask(request, version)      # None where the connection broke
    yield Sleep(100)

An actor may be paused (it hears and says nothing for a while), crash and come back. What it does
in one turn happens at once, as far as the others can see.
"""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.handlers.registry import SERVED
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.sim.host import Host
from barnabas.sim.network import Link
from barnabas.sim.telling import brief
from barnabas.sim.world import InvariantError, World

KEYS = {facts.request: key for key, facts in APIS.items()}
REQUEST_TIMEOUT_MS = 10_000
RECONNECT_MS = 50


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for a while."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the next answer; None where the connection broke or nothing came in time."""

    timeout_ms: int = REQUEST_TIMEOUT_MS


Answer = Any
"""A generated message; who asked knows which."""
Talk = Generator[Sleep | Receive, Answer, None]
Asking = Generator[Sleep | Receive, Answer, Answer]


class Asked(NamedTuple):
    """A request that waits for its answer."""

    api_key: int
    version: int
    correlation_id: int


class Actor:
    """One client process. Subclasses say what it does in `life`."""

    def __init__(self, world: World, host: Host, name: str) -> None:
        self.world = world
        self.host = host
        self.name = name
        self.rng = world.rng
        self.may_be_late = True
        """Whether requests of its may arrive after it has made another connection."""
        self.closing = False
        """Whether it should come to an end."""
        self.done = False
        self.lives = 0
        self._talk: Talk | None = None
        self._turn = 0
        self._paused_until_ms = 0
        self._link: Link | None = None
        self._asked: deque[Asked] = deque()
        self._answers: deque[Answer] = deque()
        self._receiving = False
        self._correlation_id = 0

    @property
    def is_asking(self) -> bool:
        """Whether it waits for an answer."""
        return bool(self._asked)

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
        self._drop_link()
        self._turn += 1
        self._talk.close()
        self._talk = None
        self._paused_until_ms = 0
        self.died()
        self.world.after(return_after_ms, self.start)

    def pause(self, duration_ms: int) -> None:
        """Stand still."""
        if not self.done:
            self.world.note(self.name, f"stands still for {duration_ms} ms")
            self._paused_until_ms = self.world.now_ms + duration_ms

    def lose_connection(self) -> None:
        """Have the connection break."""
        if self._link is not None and self._link.is_open:
            self.world.note(self.name, "loses its connection")
            self._link.cut()

    def send(self, request: Message, version: int | None = None) -> bool:
        """Send a request without waiting; return whether there is a connection for it."""
        if not self._connected():
            return False
        key = KEYS[type(request).__name__]
        chosen = SERVED[key].high if version is None else version
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=chosen,
            correlation_id=self._correlation_id,
            client_id=self.name,
        )
        flexible = chosen >= APIS[key].flexible_from
        head = encoder(RequestHeader, 2 if flexible else 1)(header)
        self._asked.append(Asked(key, chosen, self._correlation_id))
        self.world.tell(self.name, lambda: f"-> v{chosen} {brief(request)}")
        assert self._link is not None
        self._link.send(head + encoder(type(request), chosen)(request))
        return True

    def ask(
        self, request: Message, version: int | None = None, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Asking:
        """Send a request and wait; the answer is None where none came."""
        if not self.send(request, version):
            yield Sleep(RECONNECT_MS)
            return None
        answer = yield Receive(timeout_ms)
        if answer is None:
            yield Sleep(self.rng.randint(1, RECONNECT_MS))
        return answer

    def _connected(self) -> bool:
        if self._link is not None and self._link.is_open:
            return True
        if self.host.node is None:
            return False
        self._asked.clear()
        self._answers.clear()
        link: Link

        def on_answer(content: bytes) -> None:
            if self._link is link:
                self._hear(content)

        def on_lost() -> None:
            if self._link is link:
                self._lost()

        link = Link(
            self.world, self.host, self.name, on_answer, on_lost, may_be_late=self.may_be_late
        )
        self._link = link
        return True

    def _hear(self, content: bytes) -> None:
        key, version, correlation_id = self._asked.popleft()
        head = response_header(key, version, correlation_id)
        if not content.startswith(head):
            raise InvariantError(f"{self.name} hears an answer to another question")
        answer = decode_exact(response_class(key), version, content[len(head) :])
        self.world.tell(self.name, lambda: f"<- {brief(answer)}")
        self._answers.append(answer)
        if self._receiving:
            self._resume(self._turn, self._answers.popleft())

    def _lost(self) -> None:
        self._link = None
        self._asked.clear()
        if self._receiving:
            self._resume(self._turn, None)

    def _drop_link(self) -> None:
        link, self._link = self._link, None
        self._asked.clear()
        self._answers.clear()
        if link is not None:
            link.cut()

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
            self._drop_link()
            self.world.note(self.name, "is done")
            return
        self._wait(step)

    def _wait(self, step: Sleep | Receive) -> None:
        turn = self._turn
        if isinstance(step, Sleep):
            self.world.after(step.duration_ms, lambda: self._resume(turn, None))
        elif self._answers:
            answer = self._answers.popleft()
            self.world.after(0, lambda: self._resume(turn, answer))
        elif self._link is None:
            self.world.after(0, lambda: self._resume(turn, None))
        else:
            self._receiving = True
            self.world.after(step.timeout_ms, lambda: self._time_out(turn))

    def _time_out(self, turn: int) -> None:
        if turn == self._turn and self._receiving:
            self.world.note(self.name, "gives up waiting for an answer")
            self._drop_link()
            self._resume(turn, None)
