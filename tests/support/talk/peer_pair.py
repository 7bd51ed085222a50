"""The edges of two brokers on one event loop, which only runs while a test waits."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from barnabas import config
from barnabas.app import new_event_loop
from barnabas.effects import Address, Ask
from barnabas.model.callers import PEER_LISTENER
from barnabas.node.node import Node
from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.server.files.disk import OsDisk
from barnabas.server.server import Server

PATIENCE_S = 30
LONG_MS = 60_000

T = TypeVar("T")


def edge(
    folder: Path, loop: asyncio.AbstractEventLoop, settings: Mapping[str, object] | None = None
) -> Server:
    """Return the server of a node that has started."""
    flags = {**(settings or {}), "broker.data_dir": str(folder)}
    node = Node(config.load(None, {}, flags), OsDisk(), Random(1))
    server = Server(node, loop)
    node.timers.now_ms = server.monotonic_ms()
    node.start(server.wall_clock_ms())
    return server


class Pair:
    """One broker sends requests, the other answers."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        self.loop = new_event_loop()
        self.asker = edge(folder / "asker", self.loop)
        self.answerer = edge(folder / "answerer", self.loop, settings)
        self.clients = self.answerer.bind("127.0.0.1", 0)
        self.address = Address(*self.answerer.bind("127.0.0.1", 0, named=PEER_LISTENER))
        for server in (self.answerer, self.asker):
            server.listen(peers=True)
            server.listen(peers=False)
        self.heard: list[Any] = []

    def ask(
        self,
        request: Message,
        *,
        lane: str = "control",
        timeout_ms: int = LONG_MS,
        address: Address | None = None,
        done: Callable[[Any], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Send a request in the highest version; the future is the response, or None."""
        key = KEYS[type(request).__name__]
        version = APIS[key].high
        future: asyncio.Future[Any] = self.loop.create_future()

        def receive(body: memoryview | None) -> None:
            answer = None if body is None else decode_exact(response_class(key), version, body)
            self.heard.append(answer)
            if done is not None:
                done(answer)
            future.set_result(answer)

        body = encoder(type(request), version)(request)
        ask = Ask(address or self.address, lane, key, version, body, timeout_ms, receive)
        self.asker.run_event(lambda: self.asker.node.outbox.append(ask))
        return future

    def wait(self, waited: Awaitable[T]) -> T:
        """Run the event loop until a result is there."""

        async def within() -> T:
            return await asyncio.wait_for(waited, PATIENCE_S)

        return self.loop.run_until_complete(within())

    def close(self) -> None:
        """Close everything."""
        for server in (self.asker, self.answerer):
            server.stop_listening()
            server.close_all()
            server.driver.close()
            server.node.stop()
        self.loop.close()
