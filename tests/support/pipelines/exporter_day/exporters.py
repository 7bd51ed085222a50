"""Exporters of an invented fleet on local ports. A third of them misbehave in turn.

The values of a card follow from its number alone, so any row of a table can be checked. A card
whose number is divisible by three is idle, the others work.
"""

import asyncio
import threading
from collections.abc import Callable
from enum import StrEnum

CARDS_A_HOST = 8
METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP")
HOST = "node-"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
NO_LENGTH = b"HTTP/1.1 200 OK\r\n\r\n"
OTHER = b"<html>It works!</html>\n"
LONG_S = 60
TRICKLE_S = 0.05
STRETCH = 20
"""How many rounds an exporter behaves in the same way."""


class Behaviour(StrEnum):
    """How an exporter responds to a request."""

    GOOD = "good"
    HANG = "hang"
    TRICKLE = "trickle"
    TRUNCATE = "truncate"
    FAIL = "500"
    EMPTY = "empty"
    FOREIGN = "foreign"
    RESET = "restart"


BAD = tuple(each for each in Behaviour if each is not Behaviour.GOOD)


def behaviour(host: int, turn: int) -> Behaviour:
    """Return how a host's exporter behaves in a round."""
    stretch = turn // STRETCH
    if (host + stretch) % 3:
        return Behaviour.GOOD
    return BAD[(host // 3 + stretch) % len(BAD)]


def is_idle(card: int) -> bool:
    """Return whether a card is idle all day."""
    return card % 3 == 0


def values(card: int) -> tuple[float, float, float]:
    """Return utilisation, power and temperature of a card; the power identifies the card."""
    if is_idle(card):
        return 0.0, 70 + card / 1000, 30.0
    return 95.0, 500 + card / 1000, 60.0


def uuid(card: int) -> str:
    """Return the id of a card."""
    return f"GPU-{card:08d}-0000-4000-8000-000000000000"


def hostname(host: int) -> str:
    """Return the name of a host."""
    return f"{HOST}{host:04d}"


def page(host: int) -> bytes:
    """Return the page of a host: metric after metric, as dcgm-exporter writes it."""
    cards = range(host * CARDS_A_HOST, (host + 1) * CARDS_A_HOST)
    lines = []
    for place, name in enumerate(METRICS):
        lines.append(f"# TYPE {name} gauge")
        for card in cards:
            labels = f'gpu="{card % CARDS_A_HOST}",UUID="{uuid(card)}",device="nvidia{card % 8}"'
            named = f'{labels},modelName="NVIDIA H200",Hostname="{hostname(host)}"'
            lines.append(f"{name}{{{named}}} {values(card)[place]:g}")
    return ("\n".join(lines) + "\n").encode()


class Exporters:
    """All exporters, on one thread."""

    def __init__(self, hosts: int, turn: Callable[[], int]) -> None:
        """Take their number, and a function that returns the current round."""
        self._turn = turn
        self._pages = [page(host) for host in range(hosts)]
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        begun = asyncio.run_coroutine_threadsafe(self._begin(hosts), self._loop)
        self.ports = begun.result()

    async def _begin(self, hosts: int) -> list[int]:
        ports = []
        for host in range(hosts):
            server = await asyncio.start_server(self._handler(host), "127.0.0.1", 0)
            self._servers.append(server)
            ports.append(server.sockets[0].getsockname()[1])
        return ports

    def close(self) -> None:
        """End all responses and the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        answers = asyncio.all_tasks() - {asyncio.current_task()}
        for each in answers:
            each.cancel()
        await asyncio.gather(*answers, return_exceptions=True)

    def _handler(
        self, host: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], "asyncio.Future[None]"]:
        def handle(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> "asyncio.Future[None]":
            return asyncio.ensure_future(self._answer(host, reader, writer))

        return handle

    async def _answer(
        self, host: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await self._behave(behaviour(host, self._turn()), self._pages[host], writer)
        except (OSError, EOFError):
            pass  # the collector's deadline has passed
        finally:
            writer.close()

    async def _behave(self, how: Behaviour, content: bytes, writer: asyncio.StreamWriter) -> None:
        if how is Behaviour.HANG:
            await asyncio.sleep(LONG_S)
        elif how is Behaviour.TRICKLE:
            await _trickle(content, writer)
        elif how is Behaviour.RESET:
            writer.transport.abort()
        else:
            writer.write(_answer(how, content))
            await writer.drain()


def _answer(how: Behaviour, content: bytes) -> bytes:
    """Return the whole response of an exporter that responds at once."""
    match how:
        case Behaviour.TRUNCATE:
            # Cut in the middle of a value, with and without a Content-Length that shows it.
            cut = content[: content.rindex(b".") - 1]
            return (HEAD % len(content) if len(content) % 2 else NO_LENGTH) + cut
        case Behaviour.FAIL:
            return b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"
        case Behaviour.EMPTY:
            return HEAD % 0
        case Behaviour.FOREIGN:
            return HEAD % len(OTHER) + OTHER
        case _:
            return HEAD % len(content) + content


async def _trickle(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % len(content))
    for place in range(len(content)):
        writer.write(content[place : place + 1])
        await writer.drain()
        await asyncio.sleep(TRICKLE_S)
