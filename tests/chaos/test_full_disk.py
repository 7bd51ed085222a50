"""Tests a full disk: producers get a retriable error, readers continue, nothing is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import Record, build
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.disks.ledger import Ledger, stored_on_disk, value_of
from tests.support.disks.mounts import CannotMountError, small_disk
from tests.support.loads.load import Load, consume_all, create_topic, produce_one

pytestmark = pytest.mark.chaos

DISK_BYTES = 4 << 20
TOPIC = "full"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_disk(tmp_path / "disk", DISK_BYTES) as folder:
            yield folder
    except CannotMountError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def broker(disk: Path) -> Iterator[BrokerSubprocess]:
    with BrokerSubprocess(disk / "data") as broker:
        yield broker


def fill(disk: Path, leave: int = 0) -> Path:
    """Fill the disk completely, or nearly so."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        if leave:
            file.truncate(filler.stat().st_size - leave)
    return filler


def produce_raw(
    broker: BrokerSubprocess, value: bytes, topic: str = TOPIC, key: bytes | None = None
) -> int:
    """Produce one record without retries; return the error code."""
    batch = build([Record(0, time.time_ns() // 1_000_000, key, value)])
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    with RawClient(broker.address) as client:
        response = client.ask(request, 9, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def fill_log(broker: BrokerSubprocess, size: int = 20_000) -> int:
    """Produce until the disk refuses; return how many records were acknowledged."""
    for count in range(DISK_BYTES // size + 1):
        code = produce_raw(broker, value_of("raw", count, size))
        if code != ErrorCode.NONE:
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            return count
    raise AssertionError("the disk never became full")


def all_there(broker: BrokerSubprocess, count: int) -> bool:
    found = consume_all(broker.bootstrap, TOPIC, 1)[0]
    return [record.number for record in found] == list(range(count))


@pytest.mark.parametrize("segment_bytes", ["65536", "1073741824"], ids=["rolling", "one segment"])
def test_a_full_disk_refuses_and_recovers(
    disk: Path, broker: BrokerSubprocess, segment_bytes: str
) -> None:
    create_topic(broker.bootstrap, TOPIC, 1, {"segment.bytes": segment_bytes})
    filler = fill(disk, leave=1 << 20)
    count = fill_log(broker)
    assert count > 10
    assert produce_raw(broker, bytes(20_000)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert all_there(broker, count)
    assert broker.log_lines("the disk refused an append")
    filler.unlink()
    offset = produce_one(broker.bootstrap, TOPIC, value_of("raw", count))
    assert offset == count
    assert all_there(broker, count + 1)
    assert broker.log_lines("the disk accepts appends again")
    broker.restart()
    assert all_there(broker, count + 1)
    stored_on_disk(broker.data, TOPIC)


def test_idempotent_producers_wait_for_room(disk: Path, broker: BrokerSubprocess) -> None:
    create_topic(broker.bootstrap, TOPIC, 2, {"segment.bytes": "65536"})
    with Load(broker.bootstrap, TOPIC, 2, producers=1, size=500) as load:
        load.wait_for(100)
        for number in range(1, 4):
            filler = fill(disk)
            broker.wait_for_log("the disk refused an append", number)
            filler.unlink()
            load.wait_for(100)
        load.finish()
    assert load.failures == []
    assert load.ledger.violations(consume_all(broker.bootstrap, TOPIC, 2)) == []
    assert broker.terminate() == 0
    assert load.ledger.violations(stored_on_disk(broker.data, TOPIC)) == []


def test_a_topic_can_be_made_once_there_is_room(disk: Path, broker: BrokerSubprocess) -> None:
    filler = fill(disk)
    codes = []
    with RawClient(broker.address) as client:
        for number in range(60):  # the last page of the metadata log has room for some
            topic = CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=-1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            answer = client.ask(request, 5, CreateTopicsResponse)
            codes.append(answer.topics[0].error_code)
    assert set(codes) <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert codes[-1] == ErrorCode.KAFKA_STORAGE_ERROR
    made = codes.count(ErrorCode.NONE)
    assert made
    assert produce_raw(broker, b"raw 0 ", "t0") == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.log_lines("cannot open a topic's logs yet")
    filler.unlink()
    create_topic(broker.bootstrap, "t59", 1)
    names = {f"t{number}" for number in (*range(made), 59)}
    eventually(lambda: all(produce_raw(broker, b"raw 0 ", n) == ErrorCode.NONE for n in names))


def test_a_broker_starts_on_a_full_disk(disk: Path, broker: BrokerSubprocess) -> None:
    create_topic(broker.bootstrap, TOPIC, 1, {"segment.bytes": "65536"})
    ledger = Ledger()
    for number in range(40):
        assert produce_raw(broker, value_of("raw", number, 5000)) == ErrorCode.NONE
        ledger.acknowledge(0, "raw", number, number)
    filler = fill(disk)
    for _ in range(3):
        broker.restart()
        fill(disk)
        assert all_there(broker, 40)
        assert produce_raw(broker, bytes(20_000)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.terminate() == 0
    broker.start()
    assert all_there(broker, 40)
    filler.unlink()
    assert produce_one(broker.bootstrap, TOPIC, value_of("raw", 40)) == 40
    broker.kill()
    assert ledger.violations(stored_on_disk(broker.data, TOPIC)) == []


def test_compaction_needs_room_and_leaves_nothing_behind_without(disk: Path) -> None:
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "65536",
        "file.delete.delay.ms": "0",
    }
    settings = {"storage.compaction_check_interval": "20ms"}
    with BrokerSubprocess(disk / "data", settings=settings) as broker:
        create_topic(broker.bootstrap, TOPIC, 1, config)
        fill(disk, leave=DISK_BYTES // 2)
        count = 65
        for number in range(count):
            value = value_of("raw", number, 20_000)
            assert produce_raw(broker, value, key=b"%d" % number) == ErrorCode.NONE
        # It does not start, or notices later that producers took the space meanwhile.
        lines = ("no room to compact a log", "background work failed")
        eventually(lambda: any(map(broker.log_lines, lines)))
        (folder,) = (disk / "data" / "topics" / TOPIC).glob("0")
        assert not list(folder.glob("cleaning/*"))
        assert all_there(broker, count)
        assert broker.terminate() == 0
