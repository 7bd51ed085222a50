"""A process at its limit of open files answers every client, loses nothing and continues."""

import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.records import Record
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.disks.ledger import value_of
from tests.support.loads.load import consume_all, create_topic
from tests.support.talk import raw_requests

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit"),
]

TOPIC = "orders"
OPEN_FILES = "the process's limit of open files"


def open_files(broker: BrokerSubprocess) -> dict[int, str]:
    folder = Path(f"/proc/{broker.process.pid}/fd")
    return {int(link.name): str(link.readlink()) for link in folder.iterdir()}


class Settling:
    """Looks at the open files of a broker until no chore has one open for a moment."""

    def __init__(self, broker: BrokerSubprocess) -> None:
        self._broker = broker
        self._last: dict[int, str] = {}
        self._looks_alike = 0

    def look(self) -> dict[int, str]:
        """Return what has been open for 30 looks, without a folder that is being synced."""
        try:
            found = open_files(self._broker)
        except FileNotFoundError:  # closed between the listing and the look at it
            found = {}
        is_alike = found == self._last and not any(Path(at).is_dir() for at in found.values())
        self._looks_alike = self._looks_alike + 1 if is_alike else 0
        self._last = found
        return found if self._looks_alike >= 30 else {}


@contextmanager
def no_more_files(broker: BrokerSubprocess) -> Iterator[None]:
    """Set the limit of a running broker to the number of its open files."""
    pid = broker.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with ExitStack() as idle:
        used = eventually(Settling(broker).look)
        for _ in range(max(used) + 1 - len(used)):  # the numbers between those in use
            idle.enter_context(RawClient(broker.address))
        eventually(lambda: len(open_files(broker)) == max(used) + 1)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(used) + 1, before[1]))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def produce(client: RawClient, number: int, size: int = 100) -> int:
    record = Record(0, 1_000, None, value_of("p", number, size))
    return raw_requests.produce(client, TOPIC, [record])


def stored(broker: BrokerSubprocess) -> list[int]:
    return [found.number for found in consume_all(broker.bootstrap, TOPIC, 1)[0]]


def test_the_first_record_of_a_topic_is_answered_and_stored_once(tmp_path: Path) -> None:
    """Its sync opens folders and small files: that is no failed sync, and no lost response."""
    with BrokerSubprocess(tmp_path) as broker, RawClient(broker.address) as client:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        with no_more_files(broker):
            assert [produce(client, number) for number in range(3)] == [ErrorCode.NONE] * 3
        assert stored(broker) == [0, 1, 2]
        assert broker.log_lines("a request failed") == []


def test_a_segment_that_cannot_be_opened_refuses_the_batch_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    with BrokerSubprocess(tmp_path) as broker, RawClient(broker.address) as client:
        create_topic(broker.bootstrap, TOPIC, 1, {"segment.bytes": "1024"})
        assert produce(client, 0, 600) == ErrorCode.NONE
        with no_more_files(broker):
            assert produce(client, 1, 600) == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(client, 1, 600) == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(client, 1, 600) == ErrorCode.NONE
        assert produce(client, 2, 600) == ErrorCode.NONE
        assert stored(broker) == [0, 1, 2]
        assert broker.log_lines("a request failed") == []


def test_refused_clients_and_the_operator_are_notified_at_once(
    tmp_path: Path,
) -> None:
    with BrokerSubprocess(tmp_path) as broker, RawClient(broker.address) as client:
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        with no_more_files(broker):
            for _ in range(20):
                with RawClient(broker.address) as another:
                    assert another.was_closed()
            assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        (line,) = broker.wait_for_log("refused a connection")  # and not one for each of them
        assert line["limit"] == OPEN_FILES
        assert broker.log_lines("cannot accept connections for a moment") == []
        eventually(lambda: _is_served(broker))
        assert broker.terminate() == 0


def _is_served(broker: BrokerSubprocess) -> bool:
    with RawClient(broker.address) as client:
        try:
            return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        except (EOFError, ConnectionError):
            return False
