"""Tests where a broker listens: for clients always, for other brokers only in a cluster."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.app import CannotStartError
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def is_answered(address: tuple[str, int]) -> bool:
    with RawClient(address) as client:
        return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_a_broker_on_its_own_listens_for_clients_alone() -> None:
    with Broker() as broker:
        assert broker.peer_address is None


def test_a_voter_listens_where_all_voters_look_for_it() -> None:
    port = free_port()
    with Broker(settings={"cluster.voters": f"1@localhost:{port}"}) as broker:
        assert broker.peer_address == ("localhost", port)
        assert is_answered(("127.0.0.1", port))


def test_a_listener_on_all_addresses_is_advertised_under_the_machines_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "kafka-1.example")
    port = free_port()
    everywhere = {"broker.host": "0.0.0.0", "cluster.host": "0.0.0.0"}
    voters = {"cluster.voters": f"1@127.0.0.1:{port}", "cluster.allow_plaintext_peers": True}
    with Broker(settings={**everywhere, **voters}) as broker:
        assert broker.bootstrap.startswith("kafka-1.example:")
        assert broker.peer_address == ("127.0.0.1", port)  # what all voters know


def test_a_machine_without_a_name_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("getfqdn", "gethostname"):
        monkeypatch.setattr(socket, name, lambda: "localhost")
    with pytest.raises(CannotStartError, match=r"set broker\.advertised_host"):
        Broker(settings={"broker.host": "0.0.0.0"}).start()
    listener = {"listeners.A.listen": "0.0.0.0:0"}
    with pytest.raises(CannotStartError, match=r"set listeners\.A\.advertised"):
        Broker(settings=listener).start()
    with Broker(settings={**listener, "listeners.A.advertised": "kafka.example"}) as broker:
        assert broker.bootstrap.startswith("kafka.example:")


def test_several_listeners_are_in_the_ready_line(tmp_path: Path) -> None:
    config = tmp_path / "barnabas.yaml"
    config.write_text("listeners:\n  A:\n    listen: 127.0.0.1:0\n  B:\n    listen: h:1\n")
    chosen = f"127.0.0.1:{free_port()}"
    arguments = ("--config", str(config), "--listen", f"B={chosen}")
    with BrokerSubprocess(tmp_path / "data", arguments=arguments, listener="A") as broker:
        assert broker.listeners == {"A": broker.bootstrap, "B": chosen}
        for address in broker.listeners.values():
            host, _, port = address.rpartition(":")
            assert is_answered((host, int(port)))


def test_the_port_for_other_brokers_is_in_use(taken: int, tmp_path: Path) -> None:
    serve = [sys.executable, "-m", "barnabas.cli", "serve", "--listen", "127.0.0.1:0"]
    ended = subprocess.run(
        [*serve, "--data", str(tmp_path), "--voters", f"1@127.0.0.1:{taken}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{taken}: the port is in use" in ended.stderr
    assert "choose another with --peer-listen" in ended.stderr
