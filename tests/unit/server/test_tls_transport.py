"""The TLS transport on a real socket pair: bytes cut anywhere, full sockets, files, and the end."""

import gc
import os
import select
import socket
import ssl
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.model.ports import File, FileSlice
from barnabas.model.security_settings import TlsFiles
from barnabas.model.timers import Timers
from barnabas.server.edge_ports import ConnectionOwner
from barnabas.server.tls.tls_context import server_context
from barnabas.server.tls.tls_transport import REPEAT_MS, SEND_BYTES_MAX, TlsTransport
from tests.support.security.certificates import Certificates
from tests.support.security.tls_clients import ManualClient, trusting

RECORD_BYTES = 16 * 1024


class Owner:
    """The server as a transport sees it; turns and timers happen when a test says so."""

    def __init__(self) -> None:
        self.node = SimpleNamespace(timers=Timers())
        self.event_ms_max = 2
        self.elapsed_ms = 0
        self.turns: deque[Callable[[], None]] = deque()
        self.reading: list[bool] = []
        self.writing: list[bool] = []

    def monotonic_ms(self) -> int:
        return int(self.node.timers.now_ms) + self.elapsed_ms

    def in_turn(self, callback: Callable[[], None]) -> None:
        self.turns.append(callback)

    def watch_reading(self, _: object, *, wanted: bool) -> None:
        self.reading.append(wanted)

    def watch_writing(self, _: object, *, wanted: bool) -> None:
        self.writing.append(wanted)

    def descriptor_of(self, file: "StoredFile") -> int:
        return file.descriptor

    def take_turns(self) -> None:
        while self.turns:
            self.turns.popleft()()


class StoredFile:
    """A file on disk."""

    def __init__(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        self.descriptor = os.open(path, os.O_RDONLY)


class Pair:
    """A transport, and the client at the other end of its socket."""

    def __init__(self, certificates: Certificates) -> None:
        files = certificates.broker()
        self.owner = Owner()
        accepted, self.far = socket.socketpair()
        for each in (accepted, self.far):
            each.setblocking(False)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
        context = server_context(TlsFiles(certificate=files.certificate, key=files.key))
        self.near = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self.client = ManualClient(trusting(certificates))
        self.complete_handshake()
        self.transport = TlsTransport(cast("ConnectionOwner", self.owner), self.near)
        self.received = bytearray()
        self.room_bytes = 1 << 18
        self.ended = False
        self.connection: Any = SimpleNamespace(
            closed=False, on_readable=self.read, flush=self.flush, descriptor=self.near.fileno()
        )
        self.transport.serve(self.connection)
        self.owner.take_turns()

    def complete_handshake(self) -> None:
        done = False
        while not done:
            done = self.client.shake_hands()
            self.far.sendall(self.client.outgoing.read())
            try:
                self.near.do_handshake()
            except ssl.SSLWantReadError:
                assert not done
            self.carry_back()

    def carry_back(self) -> bytes:
        """Give the client what the transport sent; return the bytes as they were on the wire."""
        seen = b""
        while select.select([self.far], [], [], 0)[0]:
            part = self.far.recv(1 << 16)
            seen += part
            if not part:
                self.client.incoming.write_eof()
                break
            self.client.incoming.write(part)
        return seen

    def send(self, content: bytes, piece_bytes: int = 1 << 20) -> None:
        """Have the client send; after each piece the transport reads if its socket is readable."""
        self.client.tls.write(content)
        encrypted = self.client.outgoing.read()
        for start in range(0, len(encrypted), piece_bytes):
            self.far.sendall(encrypted[start : start + piece_bytes])
            self.poll()

    def poll(self) -> None:
        while select.select([self.near], [], [], 0)[0] and not self.ended:
            self.read()
            self.owner.take_turns()

    def read(self) -> None:
        room = memoryview(bytearray(self.room_bytes))
        try:
            count = self.transport.receive(room)
        except BlockingIOError:
            return
        self.received += room[:count]
        self.ended = count == 0

    def flush(self) -> None:
        self.transport.send_queued()

    def drain(self) -> bytes:
        """Return all that the transport sends, as the client reads it."""
        content = b""
        while self.transport.out:
            self.transport.send_queued()
            self.carry_back()
            content += self.client.read()
        self.carry_back()
        return content + self.client.read()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def pair(certificates: Certificates) -> Iterator[Pair]:
    made = Pair(certificates)
    yield made
    made.near.close()
    made.far.close()


@pytest.fixture
def other(certificates: Certificates) -> Iterator[Pair]:
    made = Pair(certificates)
    yield made
    made.near.close()
    made.far.close()


@pytest.mark.parametrize("piece_bytes", [1, 5, 7, 1000, 20_000])
def test_records_cut_anywhere_arrive_whole(pair: Pair, piece_bytes: int) -> None:
    content = Random(piece_bytes).randbytes(min(40_000, 300 * piece_bytes))
    pair.send(content, piece_bytes)
    assert pair.received == content


def test_what_openssl_holds_is_read_though_the_kernel_is_silent(pair: Pair) -> None:
    pair.room_bytes = 100
    pair.client.tls.write(bytes(RECORD_BYTES))
    pair.far.sendall(pair.client.outgoing.read())
    pair.read()
    assert len(pair.received) == 100
    assert not select.select([pair.near], [], [], 0)[0]
    pair.owner.take_turns()
    assert len(pair.received) == RECORD_BYTES


def test_a_read_ends_when_the_event_has_lasted_long_enough(pair: Pair) -> None:
    pair.client.tls.write(b"later")
    pair.far.sendall(pair.client.outgoing.read())
    pair.owner.elapsed_ms = 2
    pair.read()
    assert pair.received == b""
    pair.owner.elapsed_ms = 0
    pair.poll()
    assert pair.received == b"later"


def test_nothing_is_read_while_the_connection_is_paused(pair: Pair) -> None:
    pair.room_bytes = 10
    pair.client.tls.write(bytes(1000))
    pair.far.sendall(pair.client.outgoing.read())
    pair.read()
    pair.transport.watch_reading(pair.connection, wanted=False)
    pair.owner.take_turns()
    assert len(pair.received) == 10
    pair.transport.watch_reading(pair.connection, wanted=True)
    pair.owner.take_turns()
    assert len(pair.received) == 1000
    assert pair.owner.reading == [False, True]


def test_files_and_buffers_leave_in_order_through_a_full_socket(pair: Pair, tmp_path: Path) -> None:
    content = Random(1).randbytes(3 * SEND_BYTES_MAX)
    file = cast("File", StoredFile(tmp_path / "log", content))
    expected = b""
    pieces = [(0, 10), (10, SEND_BYTES_MAX + 7), (5, 0), (99, 3 * SEND_BYTES_MAX - 99)]
    for position, length in pieces:
        head = b"head %d" % length
        pair.transport.out += [head, FileSlice(file, position, length)]
        expected += head + content[position : position + length]
    pair.transport.out += [content, memoryview(content)[:50_000], b"", b"end"]
    expected += content + content[:50_000] + b"end"
    pair.transport.send_queued()
    assert pair.transport.out, "the socket took everything, so nothing had to wait"
    assert pair.drain() == expected


def test_what_waits_is_not_changed_by_what_others_send(
    pair: Pair, other: Pair, tmp_path: Path
) -> None:
    mine, others = bytes([1]) * 600_000, bytes([2]) * 600_000
    for number, (each, content) in enumerate(((pair, mine), (other, others))):
        file = cast("File", StoredFile(tmp_path / f"log-{number}", content))
        each.transport.out.append(FileSlice(file, 0, len(content)))
        each.transport.send_queued()
        assert each.transport.out
    assert pair.drain() == mine
    assert other.drain() == others


def test_a_file_never_leaves_as_plain_text(pair: Pair, tmp_path: Path) -> None:
    secret = b"the secret of the king " * 1000
    file = cast("File", StoredFile(tmp_path / "log", secret))
    pair.transport.out.append(FileSlice(file, 0, len(secret)))
    pair.transport.send_queued()
    assert b"secret" not in pair.carry_back()
    assert pair.client.read() == secret


def test_a_file_that_is_too_short_ends_the_connection(pair: Pair, tmp_path: Path) -> None:
    file = cast("File", StoredFile(tmp_path / "log", b"short"))
    pair.transport.out.append(FileSlice(file, 0, 6))
    with pytest.raises(ConnectionError, match="shorter than the slice"):
        pair.transport.send_queued()


def test_the_last_bytes_come_before_the_end(pair: Pair) -> None:
    pair.client.tls.write(b"the last words")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.tls.unwrap()
    pair.far.sendall(pair.client.outgoing.read())
    pair.read()
    assert (bytes(pair.received), pair.ended) == (b"the last words", False)
    pair.owner.take_turns()
    assert pair.ended


def test_damaged_bytes_are_an_error_after_those_before_them(pair: Pair) -> None:
    pair.client.tls.write(b"sound")
    pair.far.sendall(pair.client.outgoing.read())
    pair.client.tls.write(b"damaged")
    damaged = bytearray(pair.client.outgoing.read())
    damaged[-1] ^= 1
    pair.far.sendall(damaged)
    pair.read()
    assert pair.received == b"sound"
    with pytest.raises(ssl.SSLError):
        pair.owner.take_turns()


def test_a_connection_that_failed_is_freed_without_a_garbage_collection(
    certificates: Certificates,
) -> None:
    """The broker next to never collects all garbage, and a TLS connection takes 50 KB."""
    pair = Pair(certificates)
    pair.client.tls.write(b"before")
    pair.far.sendall(pair.client.outgoing.read() + b"\x17\x03\x03\x00\x05wrong")
    room, gone = memoryview(bytearray(100)), weakref.ref(pair.near)
    gc.disable()
    try:
        assert pair.transport.receive(room) == len(b"before")
        with suppress(ssl.SSLError):
            pair.transport.receive(room)
            raise AssertionError("the damage was not reported")
        pair.transport.close(pair.connection)
        pair.far.close()
        vars(pair.connection).clear()
        pair.owner.turns.clear()
        del pair
        assert gone() is None
    finally:
        gc.enable()


def test_closing_says_goodbye(pair: Pair) -> None:
    pair.transport.close(pair.connection)
    pair.carry_back()
    assert pair.client.tls.read(10) == b""  # an end without goodbye would raise SSLEOFError


def test_a_renegotiation_is_refused(certificates: Certificates) -> None:
    files = certificates.broker()
    context = server_context(TlsFiles(certificate=files.certificate, key=files.key))
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.num_tickets == 0
    assert all(cipher["aead"] for cipher in context.get_ciphers())


class Scripted:
    """A socket whose OpenSSL wants to write for a read, and to read for a write, once each."""

    def __init__(self) -> None:
        self.kernel, self.far = socket.socketpair()
        self.written: list[bytes] = []
        self.wants: dict[str, ssl.SSLError] = {
            "read": ssl.SSLWantWriteError(),
            "write": ssl.SSLWantReadError(),
        }

    def fileno(self) -> int:
        return self.kernel.fileno()

    def pending(self) -> int:
        return 0

    def recv_into(self, buffer: memoryview, size: int) -> int:
        if "read" in self.wants:
            raise self.wants.pop("read")
        if size < 10:
            raise ssl.SSLWantReadError
        buffer[:4] = b"text"
        return 4

    def write(self, data: bytes) -> int:
        if "write" in self.wants:
            raise self.wants.pop("write")
        self.written.append(bytes(data))
        return len(data)


class ScriptedPair:
    """A transport on such a socket, and a connection that uses it as the real one does."""

    def __init__(self) -> None:
        self.owner, self.socket = Owner(), Scripted()
        made = cast("ssl.SSLSocket", self.socket)
        self.transport = TlsTransport(cast("ConnectionOwner", self.owner), made)
        self.received: list[int] = []
        self.connection: Any = SimpleNamespace(
            closed=False, on_readable=self.read, flush=self.flush, descriptor=-1
        )

    def read(self) -> None:
        try:
            self.received.append(self.transport.receive(memoryview(bytearray(12))))
        except BlockingIOError:
            return

    def flush(self) -> None:
        self.transport.send_queued()
        self.transport.watch_writing(self.connection, wanted=bool(self.transport.out))


@pytest.fixture
def scripted() -> Iterator[ScriptedPair]:
    made = ScriptedPair()
    yield made
    made.socket.kernel.close()
    made.socket.far.close()


def test_a_read_that_must_write_first_goes_on_when_the_socket_is_writable(
    scripted: ScriptedPair,
) -> None:
    pair = scripted
    pair.transport.serve(pair.connection)
    pair.owner.take_turns()
    assert (pair.received, pair.owner.writing) == ([], [True])
    pair.flush()
    pair.owner.take_turns()
    assert pair.received == [4]
    assert pair.owner.writing == [True, False]


def test_a_write_that_must_read_first_is_repeated_and_does_not_spin(
    scripted: ScriptedPair,
) -> None:
    pair = scripted
    pair.transport.serve(pair.connection)
    pair.transport.out.append(b"answer")
    pair.flush()
    assert (pair.socket.written, pair.owner.writing) == ([], [])  # it would always be writable
    timers = pair.owner.node.timers
    timers.now_ms += REPEAT_MS
    timers.fire()
    assert pair.socket.written == [b"answer"]
    assert not pair.transport.out
