"""Tests operators that alter and delete the offsets of share groups, and delete groups."""

from collections.abc import Mapping
from typing import Any

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tests.support.talk.share_group_talk import GROUP, SOON_MS, ShareGroupTalk, share_reader


def altering(starts: Mapping[tuple[str, int], int]) -> AlterShareGroupOffsetsRequest:
    topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
    for (name, number), offset in starts.items():
        topic = topics.setdefault(name, AlterShareGroupOffsetsRequestTopic(topic_name=name))
        part = AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=offset)
        topic.partitions.append(part)
    return AlterShareGroupOffsetsRequest(group_id=GROUP, topics=list(topics.values()))


def begin_altering(talk: ShareGroupTalk, starts: Mapping[tuple[str, int], int]) -> Pending[Any]:
    return talk.begin(lambda: talk.machine.share.altering.alter(altering(starts)))


def alter(talk: ShareGroupTalk, starts: Mapping[tuple[str, int], int]) -> dict[int, int]:
    """Return the code of each partition of the only topic."""
    response = talk.run(lambda: talk.machine.share.altering.alter(altering(starts)))
    assert response.error_code == 0
    (topic,) = response.responses
    return {part.partition_index: part.error_code for part in topic.partitions}


def begin_deleting(talk: ShareGroupTalk, *names: str) -> Pending[Any]:
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    request = DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics)
    return talk.begin(lambda: talk.machine.share.deleting.delete(request))


def delete(talk: ShareGroupTalk, *names: str) -> dict[str, int]:
    """Return the code of each topic."""
    answer = begin_deleting(talk, *names)
    talk.pass_time(SOON_MS)
    return {topic.topic_name: topic.error_code for topic in result(answer).responses}


def result(answer: Pending[Any]) -> Any:
    """Return an answer, or the error with which it failed."""
    found: list[Any] = []
    answer.when_done(found.append, found.append)
    return found[0]


def starts(talk: ShareGroupTalk) -> dict[int, int]:
    return {key.partition: kept.start_offset for key, kept in talk.states.kept.items()}


def left(partitions: int = 2) -> ShareGroupTalk:
    """Return a talk in which the only member has left."""
    talk, first = share_reader(partitions)
    first.leave()
    return talk


def delete_group(talk: ShareGroupTalk) -> ErrorCode:
    return talk.run(lambda: talk.machine.delete_group(GROUP))


def test_offsets_of_an_empty_group_are_altered() -> None:
    talk = left()
    epoch = talk.group.epoch
    assert alter(talk, {("t", 0): 5}) == {0: 0}
    assert starts(talk) == {0: 5, 1: -1}
    topic_id = talk.image.topics["t"].topic_id
    assert talk.states.kept[SharePartitionKey(GROUP, topic_id, 0)].state_epoch == epoch + 1
    first = talk.member("first")
    first.join("t")
    assert first.assigned == talk.slots("t")
    assert starts(talk) == {0: 5, 1: -1}


def test_altering_creates_a_group() -> None:
    talk = ShareGroupTalk({"t": 2})
    assert alter(talk, {("t", 1): 7}) == {1: 0}
    assert (talk.group.state, talk.group.epoch) == ("Empty", 1)
    first = talk.member("first")
    first.join("t")
    first.heartbeat()
    assert first.assigned == talk.slots("t")
    assert starts(talk) == {0: -1, 1: 7}


def test_what_cannot_be_altered_has_its_own_error() -> None:
    talk = left(1)
    absent, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST
    codes = alter(talk, {("t", 0): 3, ("t", 1): 3, ("t", -1): 3})
    assert codes == {0: 0, 1: absent, -1: absent}
    assert alter(talk, {("t", 0): -5}) == {0: invalid}
    assert alter(talk, {("missing", 0): 1}) == {0: absent}
    talk.states.refused_partitions = {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert alter(talk, {("t", 0): 9}) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert starts(talk) == {0: 3}


def test_offsets_stay_while_there_are_members() -> None:
    talk, _ = share_reader(1)
    for operation in (
        lambda: begin_altering(talk, {("t", 0): 1}),
        lambda: begin_deleting(talk, "t"),
        lambda: delete_group(talk),
    ):
        assert talk.refused(operation) is ErrorCode.NON_EMPTY_GROUP


def test_a_member_that_joins_meanwhile_does_not_undo_an_alteration() -> None:
    talk = ShareGroupTalk({"t": 1})
    talk.states.answers_at_once = False
    answer = begin_altering(talk, {("t", 0): 7})
    first = talk.member("first")
    first.join("t")
    assert [name for name, _, _ in talk.states.asked] == ["initialize"]
    talk.states.answers_at_once = True
    talk.states.answer_all()
    talk.pass_time(SOON_MS)
    assert result(answer).responses[0].partitions[0].error_code == 0
    first.heartbeat()
    assert (starts(talk), first.assigned) == ({0: 7}, talk.slots("t"))


def test_an_alteration_that_cannot_be_stored_is_forgotten() -> None:
    talk = left(1)
    talk.delete_topic("t")
    talk.create_topic("t", 1)
    talk.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    refused = talk.refused(lambda: begin_altering(talk, {("t", 0): 1}))
    assert refused is ErrorCode.KAFKA_STORAGE_ERROR
    talk.refusal = None
    first = talk.member("first")
    first.join("t")
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_offsets_of_topics_are_deleted() -> None:
    talk = left(2)
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    talk.create_topic("other", 1)
    assert delete(talk, "t", "other", "missing") == {"t": 0, "other": absent, "missing": absent}
    assert talk.states.kept == {}
    assert talk.group.states.names() == {}
    assert delete(talk, "t") == {"t": absent}
    first = talk.member("first")
    first.join("t")
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_a_deletion_that_is_refused_is_retried() -> None:
    talk = left(1)
    talk.states.refused_partitions = {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert delete(talk, "t") == {"t": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    talk.states.refused_partitions = {}
    talk.pass_time(1000)
    assert (talk.states.kept, talk.group.states.deleting) == ({}, {})


def test_nothing_is_initialized_while_it_is_being_deleted() -> None:
    talk = left(1)
    talk.states.answers_at_once = False
    answer = begin_deleting(talk, "t")
    first = talk.member("first")
    first.join("t")
    talk.states.answer_all()
    talk.pass_time(SOON_MS)
    assert result(answer).responses[0].error_code == 0
    assert talk.states.kept == {}
    talk.states.answers_at_once = True
    talk.settle([first])
    assert first.assigned == talk.slots("t")


def test_offsets_that_are_being_deleted_cannot_be_altered() -> None:
    talk = left(1)
    talk.states.answers_at_once = False
    begin_deleting(talk, "t")
    assert alter(talk, {("t", 0): 1}) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_another_coordinator_completes_a_deletion() -> None:
    talk = left(2)
    talk.states.answers_at_once = False
    begin_deleting(talk, "t")
    talk.states.lose_all()
    talk.restart()
    talk.states.answers_at_once = True
    talk.pass_time(SOON_MS)
    assert (talk.states.kept, talk.group.states.deleting) == ({}, {})


def test_a_group_is_deleted_with_its_state() -> None:
    talk = left(2)
    assert delete_group(talk) is ErrorCode.NONE
    assert (talk.states.kept, talk.machine.groups) == ({}, {})
    talk.restart()
    assert talk.machine.groups == {}
    assert talk.refused(lambda: delete_group(talk)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_without_state_is_deleted_at_once() -> None:
    talk = ShareGroupTalk()
    member = talk.member("m")
    member.join("missing")
    member.leave()
    assert talk.begin(lambda: talk.machine.delete_group(GROUP)).done
    assert talk.states.asked == []
    assert talk.machine.groups == {}


def test_a_group_stays_if_its_state_cannot_be_deleted() -> None:
    talk = left(1)
    talk.states.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert delete_group(talk) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert talk.group.state == "Empty"
    talk.states.refusal = None
    assert delete_group(talk) is ErrorCode.NONE


def test_a_group_that_a_member_joins_meanwhile_stays() -> None:
    talk = left(1)
    talk.states.answers_at_once = False
    answer = talk.begin(lambda: talk.machine.delete_group(GROUP))
    first = talk.member("first")
    first.join("t")
    talk.states.answers_at_once = True
    talk.states.answer_all()
    talk.pass_time(SOON_MS)
    assert result(answer) is ErrorCode.NON_EMPTY_GROUP
    talk.settle([first])
    assert first.assigned == talk.slots("t")


def test_a_group_with_state_of_a_topic_that_vanished_unseen() -> None:
    talk = left(1)
    del talk.image.names[talk.image.topics.pop("t").topic_id]
    asked = len(talk.states.asked)
    assert delete_group(talk) is ErrorCode.NONE
    assert len(talk.states.asked) == asked  # share coordinators refuse to delete its state


def test_two_deletions_of_a_group() -> None:
    talk = left(1)
    talk.states.answers_at_once = False
    answers = [talk.begin(lambda: talk.machine.delete_group(GROUP)) for _ in range(2)]
    talk.states.answer_all()
    talk.pass_time(SOON_MS)
    assert result(answers[0]) is ErrorCode.NONE
    assert result(answers[1]).code is ErrorCode.GROUP_ID_NOT_FOUND
