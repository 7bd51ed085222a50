"""Tests flipped bits in stored files: found when read, never served, other batches unaffected."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsResponse,
)
from barnabas.protocol.records import HEADER_BYTES, Record, batches, checksum
from barnabas.server.files.disk import OsDisk
from barnabas.storage.walk import Located, walk
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from tests.support.loads.load import create_topic
from tests.support.talk import raw_requests

pytestmark = pytest.mark.chaos

TOPIC = "damage"
COUNT = 60
VALUE_BYTES = 3000
LENGTH_AT = 8
MAGIC_AT = 16
CRC_AT = 17
IN_RECORDS = HEADER_BYTES + 1000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    with BrokerSubprocess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, TOPIC, 2, {"segment.bytes": "65536"})
        with RawClient(broker.address) as client:
            for partition in (0, 1):
                for _ in range(COUNT):
                    assert produce(client, partition) == ErrorCode.NONE
        yield broker


def produce(client: RawClient, partition: int) -> int:
    record = Record(0, time.time_ns() // 1_000_000, None, bytes(VALUE_BYTES))
    return raw_requests.produce(client, TOPIC, [record], partition)


def fetch(broker: BrokerSubprocess, offset: int, partition: int = 0) -> tuple[int, list[int]]:
    """Fetch one partition; return the error code and the offsets of the batches, all checked."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    with RawClient(broker.address) as client:
        answer = client.ask(request, 11, FetchResponse).responses[0].partitions[0]
    found = []
    for header, batch in batches(answer.records or b""):
        assert checksum(batch) == header.crc, f"damage was served at offset {header.base_offset}"
        found.append(header.base_offset)
    return answer.error_code, found


def readable(broker: BrokerSubprocess, partition: int = 0) -> list[int]:
    """Read everything that can be read, and skip the rest."""
    offset, found = 0, []
    while offset < COUNT:
        code, offsets = fetch(broker, offset, partition)
        assert code in {ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE}
        assert bool(offsets) == (code == ErrorCode.NONE)
        found += offsets
        offset = offsets[-1] + 1 if offsets else offset + 1
    return found


def first_segment(broker: BrokerSubprocess) -> Path:
    return min((broker.data / "topics" / TOPIC / "0").glob("*.log"))


def batch_in(path: Path, number: int) -> Located:
    file = OsDisk().open(str(path))
    return list(walk(file, 0, file.size(), check=True))[number]


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x04]))


@pytest.mark.parametrize("when", ["running", "stopped", "killed"])
@pytest.mark.parametrize("place", [LENGTH_AT, MAGIC_AT, CRC_AT, IN_RECORDS])
def test_a_flipped_bit_in_a_sealed_segment(broker: BrokerSubprocess, when: str, place: int) -> None:
    path = first_segment(broker)
    victim = batch_in(path, 7)
    assert readable(broker) == list(range(COUNT))
    if when == "stopped":
        broker.terminate()
    elif when == "killed":
        # After a clean start, so that the segment is known to have been synced.
        broker.terminate()
        broker.start()
        broker.kill()
    flip(path, victim.position + place)
    if when != "running":
        broker.start()
    bad = victim.header.base_offset
    assert fetch(broker, bad)[0] == ErrorCode.CORRUPT_MESSAGE
    assert readable(broker) == [offset for offset in range(COUNT) if offset != bad]
    assert readable(broker, partition=1) == list(range(COUNT))
    assert len(broker.log_lines("stored records are damaged")) == 1
    with RawClient(broker.address) as client:
        assert produce(client, 0) == ErrorCode.NONE


def test_a_damaged_batch_is_not_looked_into_by_time(broker: BrokerSubprocess) -> None:
    path = first_segment(broker)
    victim = batch_in(path, 7)
    broker.terminate()
    flip(path, victim.position + IN_RECORDS)
    broker.start()
    request = raw_requests.list_offsets_request(TOPIC, victim.header.max_timestamp)
    with RawClient(broker.address) as client:
        answer = client.ask(request, 5, ListOffsetsResponse).topics[0].partitions[0]
    # Records of the same millisecond may be before it, and are a correct result.
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE or answer.offset < 7


def test_a_cut_file_is_not_served_past_its_end(broker: BrokerSubprocess) -> None:
    path = first_segment(broker)
    victim = batch_in(path, 7)
    with path.open("r+b") as file:
        file.truncate(victim.position + 100)
    code, offsets = fetch(broker, 0)
    assert (code, offsets) == (ErrorCode.NONE, list(range(7)))
    assert fetch(broker, 7)[0] == ErrorCode.CORRUPT_MESSAGE
    assert readable(broker, partition=1) == list(range(COUNT))


def test_scrubbing_finds_damage_that_no_client_reads(broker: BrokerSubprocess) -> None:
    path = first_segment(broker)
    victim = batch_in(path, 7)
    broker.terminate()
    flip(path, victim.position + IN_RECORDS)
    scrubbing = BrokerSubprocess(broker.data, settings={"storage.verify_on_start": "true"})
    with scrubbing:
        (line,) = scrubbing.wait_for_log("found damage")
        assert line["byte"] == victim.position
