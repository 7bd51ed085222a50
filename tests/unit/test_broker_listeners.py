"""Where a broker listens: for clients always, for other brokers where there can be any."""

import socket
import subprocess
import sys
from pathlib import Path

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing.broker import Broker
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
