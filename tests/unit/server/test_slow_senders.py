"""Two hundred clients send a large request each, slowly and all at once, to a real broker."""

import selectors
import socket
from contextlib import ExitStack
from struct import Struct

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.server.buffered_memory import BufferedMemory
from barnabas.sim.frames import frame_of
from barnabas.testing.broker import Broker
from barnabas.wire.addresses import split_address

SENDERS = 200
REQUEST_BYTES = 1 << 20
LIMIT_BYTES = 8 << 20
PIECE_BYTES = 64 * 1024
PATIENCE_S = 60
_LENGTH = Struct(">i")


def unknown_topic() -> bytes:
    """Return a Produce request, version 3, for a topic that does not exist."""
    body = b"\xff\xff\xff\xff\0\0\x10\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0"
    body += _LENGTH.pack(REQUEST_BYTES) + bytes(REQUEST_BYTES)
    frame = frame_of(ApiKey.PRODUCE, 3, 1, "slow", body)
    return _LENGTH.pack(len(frame)) + frame


class Sender:
    """One client: sends a piece whenever there is room for it, then waits for its answer."""

    def __init__(self, client: socket.socket, content: bytes) -> None:
        self.client = client
        self._rest = memoryview(content)
        client.setblocking(False)

    def send(self) -> bool:
        """Send a piece; return whether that was the last one."""
        self._rest = self._rest[self.client.send(self._rest[:PIECE_BYTES]) :]
        return not self._rest


def test_memory_stays_below_its_limit_and_everyone_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[int] = []
    waited: list[int] = []
    note = BufferedMemory._note_tightness

    def record(memory: BufferedMemory) -> None:
        used.append(memory.used_bytes)
        waited.append(memory.waiting)
        note(memory)

    monkeypatch.setattr(BufferedMemory, "_note_tightness", record)
    settings = {"performance.max_buffered_size": LIMIT_BYTES, "broker.auto_create_topics": False}
    with Broker(settings=settings) as broker, ExitStack() as stack:
        host, port = split_address(broker.bootstrap)
        selector = stack.enter_context(selectors.DefaultSelector())
        content = unknown_topic()
        for _ in range(SENDERS):
            client = stack.enter_context(socket.create_connection((host, port), PATIENCE_S))
            selector.register(client, selectors.EVENT_WRITE, Sender(client, content))
        answered = 0
        while answered < SENDERS:
            ready = selector.select(PATIENCE_S)
            assert ready, "nothing moves"
            for key, events in ready:
                sender: Sender = key.data
                if events & selectors.EVENT_WRITE and sender.send():
                    selector.modify(sender.client, selectors.EVENT_READ, sender)
                elif events & selectors.EVENT_READ:
                    assert sender.client.recv(4096), "the broker closed the connection"
                    selector.unregister(sender.client)
                    answered += 1
    assert max(used) <= LIMIT_BYTES
    assert max(waited) > 0, "the limit was reached"
