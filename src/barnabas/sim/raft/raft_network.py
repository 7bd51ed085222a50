"""Simulates the network between quorum members: it delays, loses, repeats and reorders messages.

It is harsher than TCP on purpose: a response may arrive after the request timed out, or twice.
Messages travel as bytes, in the highest version.
"""

from collections.abc import Callable
from typing import Any

from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.sim.raft.raft_host import RaftHost
from barnabas.sim.world import World

Link = tuple[int, int]


class RaftNetwork:
    """Carries requests and responses between hosts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hosts: dict[int, RaftHost] = {}
        self.cuts: dict[Link, None] = {}
        """The directions in which all messages are lost."""
        self.delay_ms_max = 10
        self.loss = 0.0
        self.repeat = 0.0
        self.late = 0.0

    def ask(
        self, link: Link, request: Message, timeout_ms: int, done: Callable[[Any | None], None]
    ) -> None:
        """Carry a request and its response; after the timeout the response is None."""
        told = False
        rng = self.world.rng

        def answered(answer: Message) -> None:
            nonlocal told
            if told and rng.random() >= self.late:
                return
            told = True
            done(answer)

        def timed_out() -> None:
            nonlocal told
            if not told:
                told = True
                done(None)

        def arrived(message: Message) -> None:
            host = self.hosts[link[1]]
            if host.raft is None:
                timed_out()  # no process listens there, so the connection is refused at once
            else:
                host.receive(message, reply)

        def reply(answer: Message) -> None:
            self._carry((link[1], link[0]), answer, answered)

        self.world.after(timeout_ms, timed_out)
        self._carry(link, request, arrived)

    def _carry(self, link: Link, message: Message, deliver: Callable[[Message], None]) -> None:
        rng = self.world.rng
        content = encoder(type(message), message.VERSIONS[1])(message)
        copies = 2 if rng.random() < self.repeat else 1
        for _ in range(copies):
            if rng.random() < self.loss:
                continue
            delay_ms = rng.randint(0, self.delay_ms_max)
            if rng.random() < self.late:
                delay_ms = rng.randint(0, 2_000)
            self.world.after(delay_ms, lambda: self._deliver(link, message, content, deliver))

    def _deliver(
        self, link: Link, message: Message, content: bytes, deliver: Callable[[Message], None]
    ) -> None:
        if link in self.cuts:
            return
        cls = type(message)
        deliver(decode_exact(cls, cls.VERSIONS[1], content))
