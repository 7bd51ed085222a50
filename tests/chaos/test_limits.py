"""Many clients, too many clients, and clients that say nothing."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing import crowd
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.chaos

CROWD = 10_000
CONNECTION_BYTES_MAX = 16 * 1024


def is_served(client: RawClient) -> bool:
    return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


class _Crowd:
    """Ends a crowd on the way out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def close(self) -> None:
        self._process.communicate(timeout=30)


def test_ten_thousand_connections(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if crowd.room() < CROWD:
        pytest.skip(f"a process may have only {crowd.room()} connections here")
    with BrokerSubprocess(tmp_path) as broker:
        before = broker.memory_bytes()
        clients = crowd.start(broker.address, CROWD)
        with contextlib.closing(_Crowd(clients)):
            assert crowd.served(clients) == CROWD
            each = (broker.memory_bytes() - before) / CROWD
            record_property("bytes_per_connection", round(each))
            assert each < CONNECTION_BYTES_MAX
            with RawClient(broker.address) as another:
                assert is_served(another)
        assert broker.terminate() == 0


def test_out_of_descriptors(tmp_path: Path) -> None:
    """Connections never take what the logs need; whoever comes later is served once one leaves."""
    with BrokerSubprocess(tmp_path, descriptors=400) as broker:
        clients = crowd.start(broker.address, 300)
        with contextlib.closing(_Crowd(clients)):
            served = crowd.served(clients)
            assert 0 < served < 300
            line = broker.wait_for_log("refused a connection")[0]
            assert line["limit"] == "the process's limit of open files"
        with RawClient(broker.address) as client:
            eventually(lambda: is_served(client))


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_ip"])
def test_a_limit_of_connections(tmp_path: Path, limit: str) -> None:
    with contextlib.ExitStack() as stack:
        settings = {f"performance.{limit}": 3}
        broker = stack.enter_context(BrokerSubprocess(tmp_path, settings=settings))
        clients = [stack.enter_context(RawClient(broker.address)) for _ in range(3)]
        assert all(is_served(client) for client in clients)
        with RawClient(broker.address) as fourth:
            assert fourth.was_closed()
        (line,) = broker.wait_for_log("refused a connection")
        assert line["limit"] == limit
        assert all(is_served(client) for client in clients)
        clients[0].close()
        eventually(lambda: _is_served_now(broker))


def _is_served_now(broker: BrokerSubprocess) -> bool:
    with RawClient(broker.address) as client:
        try:
            return is_served(client)
        except (EOFError, ConnectionError):
            return False


def test_a_silent_connection_is_closed(tmp_path: Path) -> None:
    settings = {"performance.connection_idle_time": "1s"}
    with BrokerSubprocess(tmp_path, settings=settings) as broker:
        with RawClient(broker.address) as silent:
            assert is_served(silent)
            assert silent.was_closed()
        with RawClient(broker.address) as client:
            assert is_served(client)
