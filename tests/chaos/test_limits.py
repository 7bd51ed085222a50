"""Tests many clients, too many clients, and clients that send nothing."""

import contextlib
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.records import Record
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.disks.ledger import value_of
from tests.support.loads.load import consume_all, create_topic, produce_one
from tests.support.members import crowd
from tests.support.talk import raw_requests

pytestmark = pytest.mark.chaos

CROWD = 10_000
TOPIC = "orders"
OPEN_FILES = "the process's limit of open files"
CONNECTION_BYTES_MAX = 16 * 1024


def is_served(client: RawClient) -> bool:
    return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


class _Crowd:
    """Ends a crowd at the end of the block."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def close(self) -> None:
        self._process.communicate(timeout=30)


def test_ten_thousand_connections(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if crowd.room() < CROWD:
        pytest.skip(f"a process can open only {crowd.room()} connections here")
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
    """Connections never use the descriptors of logs; a late client is served once one leaves."""
    with BrokerSubprocess(tmp_path, descriptors=400) as broker:
        clients = crowd.start(broker.address, 300)
        with contextlib.closing(_Crowd(clients)):
            served = crowd.served(clients)
            assert 0 < served < 300
            line = broker.wait_for_log("refused a connection")[0]
            assert line["limit"] == OPEN_FILES
        with RawClient(broker.address) as client:
            eventually(lambda: is_served(client))


def test_a_low_limit_serves_clients_and_is_reported(tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path, descriptors=256) as broker:
        event = "few files may be open; raise the limit of the process (ulimit -n)"
        (line,) = broker.log_lines(event)
        assert line["limit"] == 256
        clients = crowd.start(broker.address, 200)
        with contextlib.closing(_Crowd(clients)):
            assert 0 < crowd.served(clients) <= line["connections"]
            assert broker.wait_for_log("refused a connection")[0]["limit"] == OPEN_FILES
        create_topic(broker.bootstrap, TOPIC, 20)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
        with pytest.raises(KafkaException, match="limit of open files"):
            create_topic(broker.bootstrap, "too-many", 200)
        assert broker.terminate() == 0


@pytest.mark.parametrize(
    ("flush", "count", "clean"), [("ack", 320, False), ("interval", 500, True)]
)
def test_more_segments_than_files(tmp_path: Path, flush: str, count: int, *, clean: bool) -> None:
    """Each batch begins a new segment: segments are opened when they are read."""
    config = {"segment.bytes": "1024", "flush": flush}
    with BrokerSubprocess(tmp_path, descriptors=300) as broker:
        create_topic(broker.bootstrap, TOPIC, 1, config)
        with RawClient(broker.address) as client:
            for number in range(count):
                eventually(partial(is_stored, client, number))
        if clean:
            assert broker.terminate() == 0
        else:
            broker.kill()
        broker.start()
        with RawClient(broker.address) as client:
            assert produce(client, count) == ErrorCode.NONE
        assert stored(broker) == list(range(count + 1))
        assert broker.log_lines("cannot open a topic's logs yet") == []


def is_stored(client: RawClient, number: int) -> bool:
    return produce(client, number) == ErrorCode.NONE


def produce(client: RawClient, number: int) -> int:
    record = Record(0, 1_000, None, value_of("p", number, 600))
    return raw_requests.produce(client, TOPIC, [record])


def stored(broker: BrokerSubprocess) -> list[int]:
    return [found.number for found in consume_all(broker.bootstrap, TOPIC, 1)[0]]


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
