"""Tests which commits are accepted, what is stored, and how transactions affect it."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.groups.directory import GroupType
from barnabas.groups.simple import SimpleGroup
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import decode_group_record, encode
from barnabas.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.support.talk.group_runner import START_MS, GroupRunner
from tests.support.talk.offset_requests import (
    At,
    Position,
    codes,
    commit_request,
    delete_request,
    fetch_group,
    positions,
    transactional_request,
)

P1, P2 = ProducerIdAndEpoch(1, 0), ProducerIdAndEpoch(2, 0)
Told = Callable[[str], Any]


def commit(
    runner: GroupRunner, what: dict[At, int | Position], version: int = 9, **more: Any
) -> dict[At, int]:
    request = commit_request("g", what, **more)
    caller = runner.caller(version)
    return codes(runner.run(lambda machine: machine.offsets.commit(request, caller)))


def commit_in(
    runner: GroupRunner, producer: ProducerIdAndEpoch, what: dict[At, int | Position], **more: Any
) -> dict[At, int]:
    request = transactional_request("g", what, producer, **more)
    caller = runner.caller(5)
    return codes(runner.run(lambda machine: machine.offsets.commit_in_transaction(request, caller)))


def fetch(
    runner: GroupRunner,
    places: list[At] | None = None,
    *,
    version: int = 9,
    stable: bool = False,
    **more: Any,
) -> Any:
    group = fetch_group("g", places, **more)
    return runner.run(lambda machine: machine.offsets.fetch(group, version, require_stable=stable))


def delete(runner: GroupRunner, places: list[tuple[str, int]], group: str = "g") -> dict[At, int]:
    request = delete_request(group, places)
    return codes(runner.run(lambda machine: machine.offsets.delete(request)))


def offset(runner: GroupRunner, at: At = ("a", 0)) -> int:
    return positions(fetch(runner, [at]))[at].offset


def stored(runner: GroupRunner) -> list[tuple[Any, Any, int]]:
    """Return the stored keys and values, and the versions of the values."""
    found = []
    for written in runner.log:
        for record in written.records:
            meaning = decode_group_record(record)
            assert meaning is not None
            version = -1 if record.value is None else int.from_bytes(record.value[:2], "big")
            found.append((meaning.key, meaning.value, version))
    return found


def test_a_commit_is_stored_as_kafka_stores_it(runner: GroupRunner) -> None:
    assert commit(runner, {("a", 2): Position(7, 3, "note")}) == {("a", 2): 0}
    key = OffsetCommitKey(group="g", topic="a", partition=2)
    value = OffsetCommitValue(
        offset=7,
        leader_epoch=3,
        metadata="note",
        commit_timestamp=START_MS,
        topic_id=bytes(runner.image.topics["a"].topic_id),
    )
    assert stored(runner) == [(key, value, 4)]
    assert positions(fetch(runner)) == {("a", 2): Position(7, 3, "note")}


def test_a_retention_time_makes_it_version_1(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 7}, version=2, retention_ms=50)
    ((_, value, version),) = stored(runner)
    assert (value.expire_timestamp, value.topic_id, version) == (START_MS + 50, NO_TOPIC_ID, 1)


def test_a_retention_time_beyond_all_time_is_the_end_of_time(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 7}, version=2, retention_ms=(1 << 63) - 1)
    assert stored(runner)[0][1].expire_timestamp == (1 << 63) - 1


def test_topics_may_be_named_by_id(runner: GroupRunner) -> None:
    topic_id = bytes(runner.image.topics["a"].topic_id)
    assert commit(runner, {(topic_id, 1): 7}, version=10) == {(topic_id, 1): 0}
    ((key, value, version),) = stored(runner)
    assert (key.topic, value.topic_id, version) == ("a", topic_id, 4)
    assert offset(runner, ("a", 1)) == 7


def test_a_transaction_does_not_store_the_id(runner: GroupRunner) -> None:
    commit_in(runner, P1, {("a", 0): Position(7, 3, "note")})
    ((_, value, version),) = stored(runner)
    assert (value.offset, value.metadata, value.topic_id, version) == (7, "note", NO_TOPIC_ID, 4)


def test_what_is_written_is_what_the_codec_would_write(runner: GroupRunner) -> None:
    commit(
        runner,
        {("a", 0): Position(1 << 40, 3, "x" * 300), ("a", 1): Position(5, 2, ""), ("b", 0): -1},
    )
    commit(runner, {("a", 0): 6}, version=4, retention_ms=9)
    commit_in(runner, P1, {("b", 0): Position(9, 1, "é")})
    for written in runner.log:
        for record in written.records:
            meaning = decode_group_record(record)
            assert meaning is not None
            assert record.value is not None
            version = int.from_bytes(record.value[:2], "big")
            assert record == encode(meaning.key, meaning.value, version)
    runner.reload()
    told = positions(fetch(runner))
    assert told == {("a", 0): Position(6), ("a", 1): Position(5, 2, ""), ("b", 0): Position(-1)}


def test_a_note_of_null_is_empty(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): Position(7, -1, None)})
    assert positions(fetch(runner)) == {("a", 0): Position(7, -1, "")}


@pytest.mark.parametrize("offset_", [-1, -2, (1 << 63) - 1, -(1 << 63)])
def test_any_offset_is_stored(runner: GroupRunner, offset_: int) -> None:
    assert commit(runner, {("a", 0): offset_}) == {("a", 0): 0}
    runner.reload()
    assert offset(runner) == offset_


def test_each_partition_is_judged_by_itself() -> None:
    settings = GroupSettings(offset_metadata_max_bytes=3)
    runner = GroupRunner({"a": 1}, settings)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked: dict[At, int | Position] = {
        ("a", 0): Position(1, 0, "abc"),
        ("a", 1): 1,
        ("a", -1): 1,
        ("none", 0): Position(1, 0, "abcd"),
    }
    expected = {("a", 0): 0, ("a", 1): unknown, ("a", -1): unknown, ("none", 0): unknown}
    assert commit(runner, asked) == expected
    too_long: dict[At, int | Position] = {("a", 0): Position(2, 0, "abcd")}
    assert commit(runner, too_long) == {("a", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert commit_in(runner, P1, too_long) == {("a", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert offset(runner) == 1


def test_an_unknown_topic_id_is_named_as_such(runner: GroupRunner) -> None:
    for topic_id in (b"x" * 16, NO_TOPIC_ID):
        (code,) = commit(runner, {(topic_id, 0): 1}, version=10).values()
        assert code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (2, ErrorCode.ILLEGAL_GENERATION),
        (8, ErrorCode.ILLEGAL_GENERATION),
        (9, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_members_of_a_group_that_is_not_there(
    runner: GroupRunner, version: int, code: ErrorCode
) -> None:
    assert commit(runner, {("a", 0): 1}, version, member="m", epoch=0) == {("a", 0): code}
    assert runner.machine.groups == {}


def test_a_group_of_offsets_alone(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 1})
    for _ in range(2):
        group = runner.machine.groups["g"]
        assert isinstance(group, SimpleGroup)
        assert (group.state, group.protocol_type, group.is_empty) == ("Empty", "", True)
        refused = commit(runner, {("a", 0): 2}, member="m", epoch=3)
        assert refused == {("a", 0): ErrorCode.UNKNOWN_MEMBER_ID}
        runner.reload()


def test_what_the_group_says_of_a_member_counts(
    runner: GroupRunner, controlled_group: Told
) -> None:
    group = controlled_group("g")
    assert commit(runner, {("a", 0): 1}, member="m", epoch=3, instance="i") == {("a", 0): 0}
    assert group.asked == [("m", "i", 3, False)]
    assert group.touched == ["m"]
    before = len(stored(runner))
    group.refusal = ErrorCode.REBALANCE_IN_PROGRESS
    asked: dict[At, int | Position] = {("a", 0): 2, ("none", 0): 2}
    assert commit(runner, asked, member="m", epoch=3) == {
        ("a", 0): ErrorCode.REBALANCE_IN_PROGRESS,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (len(stored(runner)), group.touched) == (before, ["m"])


def test_a_stale_epoch_by_version(runner: GroupRunner, controlled_group: Told) -> None:
    controlled_group("g").refusal = ErrorCode.STALE_MEMBER_EPOCH
    assert set(commit(runner, {("a", 0): 1}, 9).values()) == {ErrorCode.STALE_MEMBER_EPOCH}
    assert set(commit(runner, {("a", 0): 1}, 8).values()) == {ErrorCode.UNSUPPORTED_VERSION}
    assert set(commit_in(runner, P1, {("a", 0): 1}).values()) == {ErrorCode.ILLEGAL_GENERATION}


def test_members_in_a_transaction(runner: GroupRunner, controlled_group: Told) -> None:
    refused = commit_in(runner, P1, {("a", 0): 1}, member="m", epoch=0)
    assert refused == {("a", 0): ErrorCode.ILLEGAL_GENERATION}
    group = controlled_group("g")
    assert commit_in(runner, P1, {("a", 0): 1}, member="m", epoch=4) == {("a", 0): 0}
    assert (group.asked, group.touched) == ([("m", None, 4, True)], [])
    group.refusal = ErrorCode.FENCED_INSTANCE_ID
    assert set(commit_in(runner, P1, {("a", 0): 1}).values()) == {ErrorCode.FENCED_INSTANCE_ID}


def test_a_transaction_counts_once_it_commits(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 1})
    commit_in(runner, P1, {("a", 0): 5, ("a", 1): 6})
    for _ in range(2):
        assert positions(fetch(runner)) == {("a", 0): Position(1)}
        unstable = codes(fetch(runner, [("a", 0), ("a", 1), ("a", 2)], stable=True))
        assert unstable == {
            ("a", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT,
            ("a", 1): ErrorCode.UNSTABLE_OFFSET_COMMIT,
            ("a", 2): 0,
        }
        runner.reload()
    assert codes(fetch(runner, stable=True)) == {("a", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert positions(fetch(runner, stable=True)) == {
            ("a", 0): Position(5),
            ("a", 1): Position(6),
        }
        runner.reload()


def test_an_unstable_position_is_not_returned(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): Position(1, 2, "x")})
    commit_in(runner, P1, {("a", 0): 5})
    (part,) = fetch(runner, [("a", 0)], stable=True).topics[0].partitions
    assert (part.committed_offset, part.committed_leader_epoch, part.metadata) == (-1, -1, "")


def test_a_transaction_that_aborts_leaves_nothing(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 1})
    commit_in(runner, P1, {("a", 0): 5, ("a", 1): 6})
    runner.end_transaction(P1, committed=False)
    runner.end_transaction(P2, committed=True)  # whose begin is not in this log
    for _ in range(2):
        assert positions(fetch(runner, stable=True)) == {("a", 0): Position(1)}
        runner.reload()


def test_a_plain_commit_after_a_transactional_one_outlives_its_end(runner: GroupRunner) -> None:
    commit_in(runner, P1, {("a", 0): 5})
    commit(runner, {("a", 0): 9})
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert offset(runner) == 9
        runner.reload()


def test_the_transaction_that_wrote_last_wins_whichever_ends_last(runner: GroupRunner) -> None:
    commit_in(runner, P1, {("a", 0): 5})
    commit_in(runner, P2, {("a", 0): 6})
    runner.end_transaction(P2, committed=True)
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert offset(runner) == 6
        runner.reload()


def test_a_producer_may_write_twice_before_it_commits(runner: GroupRunner) -> None:
    commit_in(runner, P1, {("a", 0): 5})
    commit_in(runner, P1, {("a", 0): 4})
    runner.end_transaction(P1, committed=True)
    assert offset(runner) == 4


def test_permission_for_offsets_is_checked_for_the_group(
    runner: GroupRunner, controlled_group: Told
) -> None:
    commit(runner, {("a", 0): 1})
    group = controlled_group("g")
    fetch(runner, [("a", 0)], member="m", epoch=5)
    assert group.asked == [("m", 5)]
    group.refusal = ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(ApiError) as refused:
        fetch(runner, member="m", epoch=4)
    assert refused.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_an_unknown_group_is_unknown_to_every_broker(runner: GroupRunner) -> None:
    assert positions(fetch(runner, [("a", 0), ("none", 4)])) == {
        ("a", 0): Position(-1),
        ("none", 4): Position(-1),
    }
    assert fetch(runner).topics == []


def test_topics_by_id(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 4, ("b", 0): 5})
    a, b = (bytes(runner.image.topics[name].topic_id) for name in "ab")
    by_id = fetch(runner, [(a, 0), (b, 0), (b"x" * 16, 0)], version=10)
    told = [(t.topic_id, [p.committed_offset for p in t.partitions]) for t in by_id.topics]
    assert told == [(a, [4]), (b, [5]), (b"x" * 16, [-1])]
    assert by_id.topics[2].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert {t.topic_id for t in fetch(runner, version=10).topics} == {a, b}


def test_an_offset_of_an_earlier_topic_of_that_name_is_not_returned_by_id(
    runner: GroupRunner,
) -> None:
    old = bytes(runner.image.topics["b"].topic_id)
    commit(runner, {(old, 0): 5}, version=10)
    new = runner.create_topic("b", 1)
    assert new != old
    (topic,) = fetch(runner, [(new, 0)], version=10).topics
    assert (topic.partitions[0].committed_offset, topic.partitions[0].error_code) == (-1, 0)


def test_deleting_offsets(runner: GroupRunner, controlled_group: Told) -> None:
    with pytest.raises(ApiError) as refused:
        delete(runner, [("a", 0)])
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    commit(runner, {("a", 0): 1, ("a", 1): 2, ("b", 0): 3})
    commit_in(runner, P1, {("a", 2): 4})
    written = len(stored(runner))
    group = controlled_group("g")
    group.topics = {"b"}
    assert delete(runner, [("a", 0), ("a", 2), ("a", 3), ("b", 0), ("none", 0)]) == {
        ("a", 0): 0,
        ("a", 2): 0,
        ("a", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("b", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(stored(runner)) == written + 2
    assert delete(runner, [("a", 0)]) == {("a", 0): 0}  # again, without a record
    assert len(stored(runner)) == written + 2
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert set(positions(fetch(runner))) == {("a", 1), ("b", 0)}
        runner.reload()


def test_what_members_of_another_kind_read_is_not_known(
    runner: GroupRunner, controlled_group: Told
) -> None:
    group = controlled_group("g")
    group.protocol_type = "connect"
    with pytest.raises(ApiError) as refused:
        delete(runner, [("a", 0)])
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    group.is_empty = True
    assert delete(runner, [("a", 0)]) == {("a", 0): 0}
    group.is_empty, group.type = False, GroupType.CONSUMER
    assert delete(runner, [("a", 0)]) == {("a", 0): 0}


def test_a_deleted_topic_takes_its_offsets_along(runner: GroupRunner) -> None:
    commit(runner, {("a", 0): 1, ("a", 2): 2, ("b", 0): 3})
    commit_in(runner, P1, {("a", 1): 4, ("a", 2): 4})
    runner.delete_topic("a")
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert positions(fetch(runner)) == {("b", 0): Position(3)}
        runner.reload()


def test_deleting_a_group(runner: GroupRunner, controlled_group: Told) -> None:
    with pytest.raises(ApiError) as refused:
        runner.run(lambda machine: machine.delete_group("g"))
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    commit(runner, {("a", 0): 1, ("a", 1): 2})
    commit_in(runner, P1, {("a", 1): 4, ("b", 0): 4})
    assert runner.run(lambda machine: machine.delete_group("g")) is ErrorCode.NONE
    runner.end_transaction(P1, committed=True)
    for _ in range(2):
        assert runner.machine.groups == {}
        assert fetch(runner).topics == []
        runner.reload()
    controlled_group("g")
    with pytest.raises(ApiError) as refused:
        runner.run(lambda machine: machine.delete_group("g"))
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP


def test_listing_groups(runner: GroupRunner, controlled_group: Told) -> None:
    commit(runner, {("a", 0): 1})
    modern = controlled_group("m")
    modern.type, modern.state = GroupType.CONSUMER, "Reconciling"

    def listed(states: list[str], types: list[str]) -> list[tuple[str, str, str, str]]:
        groups = runner.run(lambda machine: machine.list_groups(states, types))
        return [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in groups]

    simple = ("g", "", "Empty", "classic")
    other = ("m", "consumer", "Reconciling", "consumer")
    assert listed([], []) == [simple, other]
    assert listed([" EMPTY ", "dead"], []) == [simple]
    assert listed(["reconciling"], ["Consumer"]) == [other]
    assert listed([], ["CLASSIC", "what"]) == [simple]
    assert listed([], ["what"]) == []
    assert listed(["stable"], ["classic"]) == []
