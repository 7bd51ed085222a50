"""Tests ListOffsets, DeleteRecords and OffsetForLeaderEpoch."""

from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.records import Record, build
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, list_offset, produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


def test_records_that_are_not_safe_yet_are_waited_for(talk: Dialogue) -> None:
    create_topic(talk, "a")
    talk.hold_syncs = True
    produce(talk, "a", batch(3), acks=1)
    wanted = DeleteRecordsTopic(name="a", partitions=[DeleteRecordsPartition(offset=3)])
    exchange = talk.send(DeleteRecordsRequest(topics=[wanted]))
    assert exchange.waiting
    talk.release_syncs()
    ((result,),) = [topic.partitions for topic in exchange.answer.topics]
    assert (result.error_code, result.low_watermark) == (0, 3)


def delete_records(talk: Dialogue, offset: int, *, topic: str = "a") -> tuple[int, int]:
    wanted = DeleteRecordsTopic(
        name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
    )
    ((result,),) = [t.partitions for t in talk.ask(DeleteRecordsRequest(topics=[wanted])).topics]
    return result.error_code, result.low_watermark


def end_of_epoch(talk: Dialogue, epoch: int, *, current: int = -1) -> tuple[int, int, int]:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    asked = OffsetForLeaderTopic(topic="a", partitions=[wanted])
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])
    ((result,),) = [t.partitions for t in talk.ask(request).topics]
    return result.error_code, result.leader_epoch, result.end_offset


def test_the_ends_of_a_log(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert list_offset(talk, "a", EARLIEST) == (0, 0, -1)
    assert list_offset(talk, "a", LATEST) == (0, 0, -1)
    assert list_offset(talk, "a", MAX_TIMESTAMP) == (0, -1, -1)
    produce(talk, "a", batch(5))
    assert list_offset(talk, "a", EARLIEST) == (0, 0, -1)
    assert list_offset(talk, "a", EARLIEST_LOCAL) == (0, 0, -1)
    assert list_offset(talk, "a", LATEST) == (0, 5, -1)
    assert list_offset(talk, "a", LATEST_TIERED) == (0, -1, -1)
    assert list_offset(talk, "none", LATEST)[0] == 3


@pytest.mark.parametrize("codec", Codec)
def test_a_time_is_found_exactly_inside_a_batch(talk: Dialogue, codec: Codec) -> None:
    create_topic(talk, "a")
    for number in range(4):
        produce(talk, "a", batch(10, codec=codec, start_ms=START_MS + 100 * number))
    for offset, time_ms in ((0, 0), (0, -5), (7, 7), (10, 10), (10, 50), (23, 203), (39, 309)):
        wanted_ms = START_MS + max(0, 100 * (offset // 10) + offset % 10)
        assert list_offset(talk, "a", START_MS + time_ms) == (0, offset, wanted_ms)
    assert list_offset(talk, "a", START_MS + 310) == (0, -1, -1)


def test_times_that_go_back_and_forth(talk: Dialogue) -> None:
    create_topic(talk, "a")
    times = [50, 10, 90, 20, 90, 30]
    produce(talk, "a", build([Record(n, START_MS + t, None, b"") for n, t in enumerate(times)]))
    assert list_offset(talk, "a", START_MS + 60) == (0, 2, START_MS + 90)
    assert list_offset(talk, "a", START_MS + 15) == (0, 0, START_MS + 50)
    assert list_offset(talk, "a", MAX_TIMESTAMP) == (0, 2, START_MS + 90)


@pytest.mark.parametrize(("time", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_times_need_a_version_that_knows_them(
    talk: Dialogue, time: int, since: int
) -> None:
    create_topic(talk, "a")
    assert list_offset(talk, "a", time, version=since)[0] == 0
    assert list_offset(talk, "a", time, version=since - 1)[0] == 35


@pytest.mark.parametrize("version", [1, 11])
def test_a_special_time_that_there_is_not_needs_a_later_version(
    talk: Dialogue, version: int
) -> None:
    create_topic(talk, "a")
    assert [list_offset(talk, "a", time, version=version)[0] for time in (-7, -100)] == [35, 35]


def test_the_leader_epoch_is_returned_and_checked(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a")
    talk.restart()
    produce(talk, "a")

    def ask(timestamp: int, epoch: int) -> Any:
        wanted = ListOffsetsPartition(current_leader_epoch=epoch, timestamp=timestamp)
        asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="a", partitions=[wanted])])
        ((result,),) = [t.partitions for t in talk.ask(asked).topics]
        return result

    assert (ask(EARLIEST, -1).leader_epoch, ask(LATEST, 1).leader_epoch) == (0, 1)
    assert ask(START_MS, 1).leader_epoch == 0
    assert (ask(LATEST, 0).error_code, ask(LATEST, 2).error_code) == (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    )


def test_records_are_deleted_up_to_an_offset(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a", batch(10))
    assert delete_records(talk, 4) == (0, 4)
    assert list_offset(talk, "a", EARLIEST)[1] == 4
    assert list_offset(talk, "a", START_MS) == (0, 4, START_MS + 4)
    assert fetch(talk, "a", 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(talk, "a", 4).log_start_offset == 4
    assert delete_records(talk, 2) == (0, 4)
    assert delete_records(talk, 11) == (1, -1)
    assert delete_records(talk, -2) == (1, -1)
    assert delete_records(talk, -1) == (0, 10)
    assert delete_records(talk, 0, topic="none") == (3, -1)
    assert fetch(talk, "a", 10).error_code == 0
    talk.restart()
    assert list_offset(talk, "a", EARLIEST)[1] == 10


def test_records_of_internal_topics_stay(talk: Dialogue) -> None:
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    assert delete_records(talk, 0, topic="__consumer_offsets") == (17, -1)


def test_records_of_a_compacted_topic_stay(talk: Dialogue) -> None:
    create_topic(talk, "a", config={"cleanup.policy": "compact"})
    create_topic(talk, "both", config={"cleanup.policy": "compact,delete"})
    produce(talk, "a")
    assert delete_records(talk, -1) == (44, -1)
    assert delete_records(talk, -1, topic="both") == (0, 0)


def test_every_start_begins_an_epoch(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a", batch(3))
    assert end_of_epoch(talk, 0) == (0, 0, 3)
    talk.restart()
    produce(talk, "a", batch(2))
    talk.restart(crash=True)
    assert end_of_epoch(talk, 0) == (0, 0, 3)
    assert end_of_epoch(talk, 1) == (0, 1, 5)
    assert end_of_epoch(talk, 2) == (0, 2, 5)
    assert end_of_epoch(talk, 3) == (0, -1, -1)
    assert end_of_epoch(talk, 0, current=2) == (0, 0, 3)
    assert end_of_epoch(talk, 0, current=1)[0] == 74
    assert end_of_epoch(talk, 0, current=3)[0] == 75


def test_an_epoch_that_wrote_nothing_is_found_in_the_one_before(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a", batch(3))
    talk.restart()
    talk.restart()
    produce(talk, "a", batch(3))
    assert end_of_epoch(talk, 1) == (0, 0, 3)
    assert end_of_epoch(talk, 2) == (0, 2, 6)
