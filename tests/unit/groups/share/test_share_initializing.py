"""Tests how delivery state is initialized before partitions are assigned."""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from tests.support.talk.share_group_talk import ShareGroupTalk, share_reader

RETRY_MS = 30_000


def waiting(partitions: int = 2) -> ShareGroupTalk:
    """Return a talk in which a member has joined, and no share coordinator answers."""
    talk = ShareGroupTalk({"t": partitions})
    talk.states.answers_at_once = False
    talk.member("first").join("t")
    return talk


def asked(talk: ShareGroupTalk) -> list[str]:
    return [name for name, _, _ in talk.states.asked]


def initialized(talk: ShareGroupTalk) -> set[int]:
    parts = talk.group.states.initialized.values()
    return {number for part in parts for number in part.partitions}


def test_what_is_being_initialized_is_not_assigned() -> None:
    talk = waiting()
    second = talk.member("second")
    second.join("t")
    assert second.heartbeat().heartbeat_interval_ms == 200
    assert second.assigned == set()
    assert asked(talk) == ["initialize"]
    talk.states.answer_all()
    talk.pass_time(10)
    second.heartbeat()
    assert len(second.assigned) == 1


def test_the_state_has_the_epoch_of_the_group() -> None:
    talk, _ = share_reader(1)
    (kept,) = talk.states.kept.values()
    assert (kept.state_epoch, kept.start_offset) == (1, -1)


def test_what_is_not_answered_is_asked_again_after_thirty_seconds() -> None:
    talk = waiting()
    talk.states.lose_all()
    talk.pass_time(RETRY_MS - 100)
    assert asked(talk) == ["initialize"]
    talk.pass_time(200)
    assert asked(talk) == ["initialize"] * 2
    talk.states.answer_all()
    talk.pass_time(10)
    assert initialized(talk) == {0, 1}
    talk.pass_time(2 * RETRY_MS)
    assert asked(talk) == ["initialize"] * 2


def test_what_is_refused_is_asked_again_with_growing_delays() -> None:
    talk = ShareGroupTalk({"t": 1})
    talk.states.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    first = talk.member("first")
    first.join("t")
    for seconds, questions in ((1, 2), (2, 3), (4, 4), (8, 5)):
        talk.pass_time(seconds * 1000 + 20)
        assert len(asked(talk)) == questions
    talk.states.refusal = None
    talk.pass_time(17_000)
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_a_long_wait_has_long_intervals() -> None:
    talk = ShareGroupTalk({"t": 1})
    talk.states.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    first = talk.member("first")
    assert first.join("t").heartbeat_interval_ms == 200
    talk.pass_time(5000)
    assert first.heartbeat().heartbeat_interval_ms == 5000


def test_what_was_initialized_is_assigned_while_the_rest_is_refused() -> None:
    talk = ShareGroupTalk({"t": 3})
    talk.states.refused_partitions = {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    first = talk.member("first")
    first.join("t")
    first.heartbeat()
    assert {number for _, number in first.assigned} == {0, 2}
    talk.states.refused_partitions = {}
    talk.pass_time(1000)
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_another_coordinator_asks_again_at_once() -> None:
    talk = waiting()
    talk.states.lose_all()
    talk.restart()
    talk.states.answers_at_once = True
    talk.pass_time(10)
    assert asked(talk) == ["initialize"] * 2
    assert initialized(talk) == {0, 1}


def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    talk = waiting()
    talk.delete_topic("t")
    before = len(talk.log)
    talk.states.answer_all()
    talk.pass_time(100_000)
    assert len(talk.log) == before + 4  # the session of the member ended
    assert talk.group.states.names() == {}


def test_deleted_topics_are_forgotten() -> None:
    talk, first = share_reader(2)
    talk.delete_topic("t")
    assert talk.group.states.names() == {}
    assert asked(talk) == ["initialize"]
    first.heartbeat()
    assert first.assigned == set()


def test_a_topic_that_is_created_again_is_initialized_again() -> None:
    talk, first = share_reader(1)
    talk.delete_topic("t")
    talk.create_topic("t", 1)
    talk.settle([first])
    assert first.assigned == talk.slots("t")
    assert talk.image.topics["t"].topic_id in {key.topic_id for key in talk.states.kept}


def test_a_topic_that_vanished_unseen_is_no_longer_asked_for() -> None:
    talk = waiting()
    talk.states.lose_all()
    talk.image.topics["t"].topic_id = TopicId(bytes(15) + b"9")
    talk.image.names = {topic.topic_id: topic.name for topic in talk.image.topics.values()}
    talk.restart()
    talk.pass_time(10)
    assert talk.group.states.initializing == {}
    assert asked(talk) == ["initialize"]


def test_a_full_disk_delays_the_assignment() -> None:
    talk = waiting(1)
    talk.states.answer_all()
    talk.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    talk.pass_time(100)
    assert initialized(talk) == set()
    talk.refusal = None
    talk.states.answers_at_once = True
    talk.pass_time(2000)
    assert initialized(talk) == {0}
