"""Tests a small request over a real socket while another client's request takes long.

The order of the responses counts: the polite client sends second and gets its response first. On a
busy machine its request may come too late, so it has several attempts. A broker that does the long
work in one event answers the other client first in all of them.
"""

import select
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsResponse,
)
from barnabas.protocol.messages.produce import (
    ProduceResponse,
)
from barnabas.protocol.records import HEADER_BYTES, Record, build, checksum
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.raw_requests import list_offsets_request, produce_request
from tests.support.talk.requests import create_topic, fetch_request, produce

Answer = TypeVar("Answer", bound=Message)

ATTEMPTS = 5
PARTITIONS = 20
RECORDS = 10_000
SMALL_BATCHES = 20_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker that has just started on existing topics."""
    folder: Path = tmp_path_factory.mktemp("data")
    talk = Dialogue(folder)
    create_topic(talk, "large", PARTITIONS)
    large = build([Record(n, START_MS + n, None, b"") for n in range(RECORDS)])
    for number in range(PARTITIONS):
        produce(talk, "large", large, partition=number)
    create_topic(talk, "small", ATTEMPTS)
    small = bytes(build([Record(0, START_MS, None, b"")]))
    for number in range(ATTEMPTS):
        for _ in range(SMALL_BATCHES):
            talk.node.find("small", number).leader.append(memoryview(bytearray(small)), START_MS)
    create_topic(talk, "compacted", config={"cleanup.policy": "compact"})
    talk.settle()
    talk.stop()
    with Broker(folder) as running:
        yield running


@pytest.fixture
def clients(broker: Broker) -> Iterator[tuple[RawClient, RawClient]]:
    """Return a client with a large request, and a polite one."""
    host, port = broker.bootstrap.split(":")
    with RawClient((host, int(port))) as greedy, RawClient((host, int(port))) as polite:
        yield greedy, polite


def overtaken(
    clients: tuple[RawClient, RawClient],
    requests: Iterable[Message],
    version: int,
    answer_type: type[Answer],
) -> Answer | None:
    """Return the first response that came after the polite client's."""
    greedy, polite = clients
    for request in requests:
        greedy.send_request(request, version)
        polite.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        answered = select.select([greedy.socket], [], [], 0)[0]
        answer = greedy.receive(answer_type, version)
        if not answered:
            return answer
    return None


def of_many_records(count: int) -> bytes:
    """Return a batch of the smallest records with a key, compressed into a few bytes."""
    packed = compress(Codec.ZSTD, bytes([14, 0, 0, 0, 2, 107, 0, 0]) * count)
    batch = build([Record(0, START_MS, b"k", b"")])[:HEADER_BYTES] + packed
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[21:23] = int(Codec.ZSTD).to_bytes(2, "big")
    batch[23:27] = (count - 1).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    batch[17:21] = checksum(batch).to_bytes(4, "big")
    return bytes(batch)


def test_look_ups_by_time_hold_up_no_other_client(clients: tuple[RawClient, RawClient]) -> None:
    requests = [list_offsets_request("large", START_MS + RECORDS - 1, PARTITIONS)] * ATTEMPTS
    answer = overtaken(clients, requests, 7, ListOffsetsResponse)
    assert answer is not None
    offsets = [each.offset for each in answer.topics[0].partitions]
    assert offsets == [RECORDS - 1] * PARTITIONS


def test_a_batch_of_very_many_records_does_not_delay_other_clients(
    clients: tuple[RawClient, RawClient],
) -> None:
    requests = [produce_request("compacted", of_many_records(200_000))] * ATTEMPTS
    answer = overtaken(clients, requests, 9, ProduceResponse)
    assert answer is not None
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_batch_of_more_records_than_are_opened_is_refused(
    clients: tuple[RawClient, RawClient],
) -> None:
    answer = clients[0].ask(
        produce_request("compacted", of_many_records(1_100_000)), 9, ProduceResponse
    )
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_first_read_of_stored_records_does_not_delay_other_clients(
    clients: tuple[RawClient, RawClient],
) -> None:
    sizes = {"partition_max_bytes": 1 << 24, "max_bytes": 1 << 24}
    requests = [fetch_request("small", partition=n, **sizes) for n in range(ATTEMPTS)]
    answer = overtaken(clients, requests, 11, FetchResponse)
    assert answer is not None
    assert len(answer.responses[0].partitions[0].records or b"") >= 1 << 20
