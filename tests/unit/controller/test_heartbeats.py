"""Tests the sessions of brokers with the active controller."""

import pytest

from barnabas.controller.heartbeats import Heartbeats
from barnabas.model.errors import ApiError, ErrorCode
from tests.support.talk.controller_talk import SESSION_MS, ControllerTalk


def test_a_broker_is_unfenced_once_it_knows_of_its_registration() -> None:
    talk = ControllerTalk()
    talk.register(talk.registration(1))
    early = talk.heartbeat(1, applied=talk.end_offset - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    ready = talk.heartbeat(1)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)
    assert talk.broker(1).is_active


def test_a_broker_that_wants_to_stay_out_stays_out() -> None:
    talk = ControllerTalk()
    talk.register(talk.registration(1))
    assert talk.heartbeat(1, want_fence=True).is_fenced
    assert talk.broker(1).fenced


def test_a_broker_may_have_itself_fenced(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.heartbeat(1, want_fence=True).is_fenced
    assert talk.partition().leader == 2


@pytest.mark.parametrize("node_id", [1, 9])
def test_an_earlier_process_gets_an_error(talk: ControllerTalk, node_id: int) -> None:
    with pytest.raises(ApiError) as refused:
        talk.heartbeat(node_id, epoch=77)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_silent_broker_is_due_at_the_end_of_its_session(talk: ControllerTalk) -> None:
    talk.now_ms = 5_000
    talk.heartbeat(1)
    talk.heartbeat(2)
    assert talk.heartbeats.deadline_ms(talk.image) == SESSION_MS
    assert talk.heartbeats.due(talk.image, SESSION_MS - 1) == []
    assert talk.heartbeats.due(talk.image, SESSION_MS) == [3]
    talk.fence(3)
    assert talk.heartbeats.due(talk.image, SESSION_MS) == []
    assert talk.heartbeats.deadline_ms(talk.image) == 5_000 + SESSION_MS


def test_without_brokers_no_log_is_due() -> None:
    talk = ControllerTalk()
    assert talk.heartbeats.deadline_ms(talk.image) is None


def test_a_fenced_broker_is_unfenced_when_it_knows_that_it_was_fenced(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3])
    before = talk.end_offset
    talk.fence(1)
    assert talk.heartbeat(1, applied=before).is_fenced
    assert not talk.heartbeat(1).is_fenced


def test_after_a_change_of_controllers_every_broker_has_a_whole_session(
    talk: ControllerTalk,
) -> None:
    talk.fence(3)
    successor = Heartbeats(SESSION_MS)
    successor.begin(talk.image, 50_000, talk.end_offset)
    assert successor.due(talk.image, 50_000 + SESSION_MS - 1) == []
    assert successor.due(talk.image, 50_000 + SESSION_MS) == [1, 2]
    assert not successor.in_session(3, 50_000), "it was fenced, and is not expected"


def test_a_broker_that_stops_hands_over_and_goes_when_the_others_know(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3], [1])
    assert not talk.heartbeat(1, stop=True).should_shut_down
    assert (talk.partition(0).leader, talk.partition(0).isr) == (2, [2, 3])
    assert (talk.partition(1).leader, talk.partition(1).isr) == (-1, [1])
    assert (talk.broker(1).stopping, talk.broker(1).fenced) == (True, False)
    talk.heartbeat(2)
    assert not talk.heartbeat(1, stop=True).should_shut_down, "3 does not know of the change yet"
    talk.heartbeat(3)
    assert talk.heartbeat(1, stop=True).should_shut_down
    assert talk.broker(1).fenced
    end = talk.end_offset
    assert talk.heartbeat(1, stop=True).should_shut_down
    assert talk.end_offset == end


def test_what_others_know_may_be_learned_from_their_fetches(talk: ControllerTalk) -> None:
    talk.heartbeat(1, stop=True)
    for node_id in (2, 3):
        talk.heartbeats.applied(node_id, talk.end_offset)
    assert talk.heartbeat(1, stop=True).should_shut_down


def test_a_successor_continues_with_a_stop(talk: ControllerTalk) -> None:
    talk.heartbeat(1, stop=True)
    talk.heartbeats.begin(talk.image, talk.now_ms, talk.end_offset)
    assert not talk.heartbeat(1, stop=True).should_shut_down
    talk.heartbeat(2)
    talk.heartbeat(3)
    assert talk.heartbeat(1, stop=True).should_shut_down


def test_a_broker_that_said_it_stops_is_not_unfenced_again(talk: ControllerTalk) -> None:
    talk.heartbeat(1, stop=True)
    assert not talk.heartbeat(1).should_shut_down
    assert talk.broker(1).stopping


def test_the_last_broker_goes_at_once_and_keeps_what_it_leads(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.fence(2)
    talk.fence(3)
    assert talk.heartbeat(1, stop=True).should_shut_down
    assert talk.partition().leader == 1


def test_a_fenced_broker_may_go_at_once(talk: ControllerTalk) -> None:
    talk.fence(1)
    assert talk.heartbeat(1, stop=True).should_shut_down


def test_a_stop_that_could_not_be_stored_starts_again(
    talk: ControllerTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All brokers know the log up to that offset, but no leadership was moved."""
    talk.create([1, 2, 3])
    with monkeypatch.context() as patch:
        patch.setattr(talk, "commit", lambda _: None)  # the disk refuses writes
        talk.heartbeat(1, stop=True)
    for name in ("a", "b", "c"):
        talk.create([1, 2, 3], name=name)
    for broker in (2, 3):
        talk.heartbeat(broker)
    assert not talk.heartbeat(1, stop=True).should_shut_down
    assert (talk.partition().leader, talk.partition().isr) == (2, [2, 3])
