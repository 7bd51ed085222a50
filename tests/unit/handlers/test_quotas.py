"""Tests quotas: the response comes at once and says how long the client must pause (KIP-219)."""

from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch_request, produce, send_produce


def test_a_producer_over_its_quota_must_pause(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "10KB"})
    create_topic(talk, "a")
    within = send_produce(talk, "a", batch(value=bytes(5_000)))
    assert (within.throttle_ms, within.answer.throttle_time_ms) == (0, 0)
    over = send_produce(talk, "a", batch(value=bytes(107_500)))
    assert 900 < over.throttle_ms < 1200
    assert over.answer.throttle_time_ms == over.throttle_ms
    (topic,) = over.answer.responses
    assert topic.partition_responses[0].error_code == 0, "slowed down, not refused"
    talk.pass_time(over.throttle_ms)
    assert send_produce(talk, "a", batch()).throttle_ms < 50


def test_acks_0_is_paced_too(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "10KB"})
    create_topic(talk, "a")
    assert send_produce(talk, "a", batch(value=bytes(130_000)), acks=0).throttle_ms > 1000


def test_a_consumer_over_its_quota_must_pause(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.consumer_quota": "10KB"})
    create_topic(talk, "a")
    produce(talk, "a", batch(value=bytes(130_000)))
    exchange = talk.send(fetch_request("a"), 12)
    assert exchange.answer.throttle_time_ms == exchange.throttle_ms > 1000


def test_one_answer_holds_no_more_than_the_quota_allows(tmp_path: Path) -> None:
    talk = filled(tmp_path, batches=200)
    exchange = talk.send(fetch_request("a", max_bytes=50 << 20), 12)
    assert 98 * KIB < size_of(exchange.answer) <= 100 * KIB
    assert exchange.throttle_ms == 0, "an idle client may use ten seconds' worth"
    exchange = talk.send(fetch_request("a", max_bytes=50 << 20), 12)
    assert 8 * KIB < size_of(exchange.answer) <= 10 * KIB, "then a second's worth at most"
    assert exchange.throttle_ms > 0


def test_at_least_one_batch_is_returned(tmp_path: Path) -> None:
    talk = filled(tmp_path, batches=2, value=bytes(140 * KIB))
    exchange = talk.send(fetch_request("a"), 12)
    assert size_of(exchange.answer) > 140 * KIB
    assert 4_000 < exchange.throttle_ms < 4_200


def test_a_client_that_reconnects_must_still_pause(tmp_path: Path) -> None:
    """The bucket belongs to the client id, whichever connection it uses."""
    talk = filled(tmp_path, batches=200)
    for _ in range(2):
        exchange = talk.send(fetch_request("a"), 12)
    assert 700 < exchange.throttle_ms < 1_000
    again = talk.send(fetch_request("a"), 12)
    assert again.answer.responses == []
    assert again.answer.throttle_time_ms == again.throttle_ms == exchange.throttle_ms
    talk.pass_time(again.throttle_ms)
    assert size_of(talk.ask(fetch_request("a"), 12)) > 8 * KIB, "an empty response uses no quota"


def test_a_consumer_gets_its_quota_and_no_more(tmp_path: Path) -> None:
    talk = filled(tmp_path, batches=500)
    seconds, served, start_ms = 20, 0, talk.now_ms
    while talk.now_ms - start_ms < seconds * 1000:
        exchange = talk.send(fetch_request("a"), 12)
        served += size_of(exchange.answer)
        talk.pass_time(max(1, exchange.throttle_ms))
    assert 0.95 * (seconds + 10) * QUOTA <= served <= (seconds + 12) * QUOTA


def test_a_fetch_waits_for_no_more_than_it_may_get(tmp_path: Path) -> None:
    talk = filled(tmp_path, batches=200)
    exchange = talk.send(fetch_request("a", min_bytes=1 << 20, max_wait_ms=60_000), 12)
    assert not exchange.waiting


def test_a_throttled_fetch_begins_no_session(tmp_path: Path) -> None:
    """Java's client takes the empty answer for one that begins nothing, and asks for all again."""
    talk = filled(tmp_path, batches=200)
    for _ in range(2):
        talk.ask(fetch_request("a"), 12)
    answer = talk.ask(fetch_request("a", session_epoch=0), 12)
    assert answer.throttle_time_ms > 0
    assert answer.session_id == 0
    assert len(talk.node.sessions) == 0


def test_a_session_goes_on_after_a_throttled_fetch(tmp_path: Path) -> None:
    talk = filled(tmp_path, batches=200)
    first = talk.ask(fetch_request("a", session_epoch=0), 12)
    assert size_of(first) > 8 * KIB
    talk.ask(FetchRequest(max_bytes=1 << 20, session_id=first.session_id, session_epoch=1), 12)
    asked = FetchRequest(max_bytes=1 << 20, session_id=first.session_id, session_epoch=2)
    throttled = talk.ask(asked, 12)
    assert (throttled.responses, throttled.session_id) == ([], first.session_id)
    talk.pass_time(throttled.throttle_time_ms)
    asked = FetchRequest(max_bytes=1 << 20, session_id=first.session_id, session_epoch=3)
    assert size_of(talk.ask(asked, 12)) > 8 * KIB


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_fetch_that_waited_while_another_used_up_the_quota(
    tmp_path: Path, session_epoch: int
) -> None:
    talk = filled(tmp_path, batches=200)
    create_topic(talk, "idle")
    waiting = talk.send(fetch_request("idle", max_wait_ms=60_000, session_epoch=session_epoch), 12)
    for _ in range(2):
        talk.ask(fetch_request("a"), 12)
    assert waiting.waiting
    produce(talk, "idle")
    assert waiting.answer.responses == []
    assert waiting.answer.throttle_time_ms == waiting.throttle_ms > 0
    assert waiting.answer.session_id == 0
    assert len(talk.node.sessions) == 0


def test_a_session_that_waited_while_another_used_up_the_quota_loses_nothing(
    tmp_path: Path,
) -> None:
    talk = filled(tmp_path, batches=200)
    create_topic(talk, "idle")
    session_id = talk.ask(fetch_request("idle", max_wait_ms=0, session_epoch=0), 12).session_id
    asked = FetchRequest(
        max_bytes=1 << 20, min_bytes=1, max_wait_ms=60_000, session_id=session_id, session_epoch=1
    )
    waiting = talk.send(asked, 12)
    for _ in range(2):
        talk.ask(fetch_request("a"), 12)
    produce(talk, "idle")
    assert (waiting.answer.responses, waiting.answer.session_id) == ([], session_id)
    talk.pass_time(waiting.throttle_ms)
    asked = FetchRequest(max_bytes=1 << 20, session_id=session_id, session_epoch=2)
    assert size_of(talk.ask(asked, 12)) > 0


@pytest.mark.parametrize("step_ms", [-60_000, 60_000])
def test_a_step_of_the_calendar_changes_no_pause(tmp_path: Path, step_ms: int) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "10KB"})
    create_topic(talk, "a")
    assert send_produce(talk, "a", batch(value=bytes(101_000))).throttle_ms == 0
    talk.now_ms += step_ms
    talk.pass_time(1)
    over = send_produce(talk, "a", batch(value=bytes(5_000)))
    assert 250 < over.throttle_ms < 450


KIB = 1024
QUOTA = 10 * KIB


def filled(folder: Path, *, batches: int, value: bytes = bytes(1_000)) -> Dialogue:
    """Return a broker with a quota for consumers, and a topic with more bytes than it allows."""
    talk = Dialogue(folder, {"performance.consumer_quota": QUOTA})
    create_topic(talk, "a")
    for _ in range(batches):
        produce(talk, "a", batch(value=value))
    return talk


def size_of(answer: FetchResponse) -> int:
    parts = [part for topic in answer.responses for part in topic.partitions]
    return sum(len(part.records or b"") for part in parts)
