"""Limits on the number of connections, and on the rate at which they come, through real sockets."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas import config
from barnabas.app import new_event_loop
from barnabas.metadata.security_image import entity_of
from barnabas.model.callers import PEER_LISTENER, Listener
from barnabas.model.errors import ConfigError
from barnabas.server.admission import overrides_of
from barnabas.server.server import Server
from tests.support.talk.peer_pair import edge

PATIENCE_S = 30
INTERNAL = Listener("INTERNAL")
API_VERSIONS = b"\0\0\0\x0d" + b"\0\x12\0\0" + b"\0\0\0\x01" + b"\0\x03abc"


class Limited:
    """A server on a loop that turns while a test waits, and its clients."""

    def __init__(self, folder: Path, settings: dict[str, object], internal: int = 0) -> None:
        self.loop = new_event_loop()
        self.server: Server = edge(folder, self.loop, settings)
        self.address = self.server.bind("127.0.0.1", 0)
        self.internal = self.server.bind("127.0.0.1", 0, named=INTERNAL, max_connections=internal)
        self.peers = self.server.bind("127.0.0.1", 0, named=PEER_LISTENER)
        self.server.listen(peers=True)
        self.server.listen(peers=False)
        self.stack = ExitStack()

    def connect(self, address: tuple[str, int] | None = None) -> socket.socket:
        """Open one more connection."""
        opened = socket.create_connection(address or self.address, PATIENCE_S)
        return self.stack.enter_context(opened)

    def is_served(self, client: socket.socket) -> bool:
        """Tell whether a request is answered; if not, the connection was closed."""
        client.setblocking(False)

        async def ask() -> bool:
            try:
                await self.loop.sock_sendall(client, API_VERSIONS)
                return bool(await self.loop.sock_recv(client, 4096))
            except ConnectionError:
                return False

        return self.loop.run_until_complete(asyncio.wait_for(ask(), PATIENCE_S))

    def close(self) -> None:
        """Stop the server and close its clients."""
        self.stack.close()
        self.server.stop_listening()
        self.server.close_all()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


@pytest.fixture
def started() -> Iterator[list[Limited]]:
    made: list[Limited] = []
    yield made
    for each in made:
        each.close()


def limited(
    started: list[Limited], folder: Path, internal: int = 0, **performance: object
) -> Limited:
    settings = {f"performance.{name}": value for name, value in performance.items()}
    one = Limited(folder, settings, internal)
    started.append(one)
    return one


def test_an_address_may_have_a_limit_of_its_own(tmp_path: Path, started: list[Limited]) -> None:
    one = limited(
        started,
        tmp_path,
        max_connections_per_ip=100,
        max_connections_per_ip_overrides="127.0.0.1:2, 10.0.0.1:1",
    )
    clients = [one.connect() for _ in range(3)]
    assert [one.is_served(client) for client in clients] == [True, True, False]
    clients[0].close()
    one.loop.run_until_complete(asyncio.sleep(0))
    assert one.is_served(clients[1]), "the loop has seen the end of the first"
    assert one.is_served(one.connect())


def test_a_listener_may_have_a_limit_of_its_own(tmp_path: Path, started: list[Limited]) -> None:
    one = limited(started, tmp_path, internal=1)
    first, second = one.connect(one.internal), one.connect(one.internal)
    assert [one.is_served(each) for each in (first, second)] == [True, False]
    assert one.is_served(one.connect()), "the other listener is not concerned"


def test_other_brokers_are_spared(tmp_path: Path, started: list[Limited]) -> None:
    one = limited(started, tmp_path, max_connections=1, max_connections_per_ip=1)
    one.server.node.quotas.change(entity_of({"ip": None}), "connection_creation_rate", 1.0)
    peers = [one.connect(one.peers) for _ in range(15)]
    assert all(one.is_served(peer) for peer in peers)


def test_an_address_over_its_rate_is_closed_after_a_while(
    tmp_path: Path, started: list[Limited]
) -> None:
    one = limited(started, tmp_path)
    one.server.node.quotas.change(entity_of({"ip": None}), "connection_creation_rate", 1.0)
    served = [one.is_served(one.connect()) for _ in range(10)]
    assert all(served), "ten seconds' worth"
    late = one.connect()
    accepted_ms = one.server.monotonic_ms()
    assert not one.is_served(late)
    assert one.server.monotonic_ms() - accepted_ms < PATIENCE_S * 1000
    assert one.server._admission.delayed == 0


def test_connections_that_wait_for_their_end_are_closed_with_the_server(
    tmp_path: Path, started: list[Limited]
) -> None:
    one = limited(started, tmp_path)
    one.server.node.quotas.change(entity_of({"ip": "127.0.0.1"}), "connection_creation_rate", 1.0)
    for _ in range(10):
        one.is_served(one.connect())
    one.connect()
    assert one.is_served(one.connect(one.peers)), "the loop has seen those before it"
    assert one.server._admission.delayed == 1
    one.server.close_all()
    assert one.server._admission.delayed == 0


def test_the_rate_of_all_connections_makes_clients_wait(
    tmp_path: Path, started: list[Limited]
) -> None:
    """Nothing is refused, and connections are accepted no faster than the rate allows."""
    rate = 20
    one = limited(started, tmp_path, max_connection_rate=rate)
    began_ms = one.server.monotonic_ms()
    for _ in range(rate * 10 + 5):
        client = one.connect()
        assert one.is_served(client)
        client.close()
    passed_s = (one.server.monotonic_ms() - began_ms) / 1000
    assert rate * 10 + 4 <= rate * 10 + rate * passed_s, "by the clock of the broker"


@pytest.mark.parametrize("wrong", ["10.0.0.1", "host:5", "10.0.0.1:0", "10.0.0.1:x"])
def test_wrong_limits_are_refused(wrong: str) -> None:
    flags = {"performance.max_connections_per_ip_overrides": wrong, "broker.data_dir": "x"}
    with pytest.raises(ConfigError, match="max_connections_per_ip_overrides"):
        config.load(None, {}, flags)


def test_limits_by_address() -> None:
    assert overrides_of(("10.0.0.1:5", "[::1]:7", "::ffff:10.0.0.2:3")) == {
        "10.0.0.1": 5,
        "::1": 7,
        "10.0.0.2": 3,
    }
