"""Quotas: the answer comes at once and says for how long the client is not read (KIP-219)."""

from pathlib import Path

from barnabas.testing.dialogue import Dialogue
from barnabas.testing.requests import batch, create_topic, fetch_request, produce, send_produce


def test_a_producer_over_its_quota_is_told_to_pause(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "10KB"})
    create_topic(talk, "a")
    within = send_produce(talk, "a", batch(value=bytes(5_000)))
    assert (within.throttle_ms, within.answer.throttle_time_ms) == (0, 0)
    over = send_produce(talk, "a", batch(value=bytes(15_240)))
    assert 900 < over.throttle_ms < 1200
    assert over.answer.throttle_time_ms == over.throttle_ms
    (topic,) = over.answer.responses
    assert topic.partition_responses[0].error_code == 0, "slowed down, not refused"
    talk.pass_time(over.throttle_ms)
    assert send_produce(talk, "a", batch()).throttle_ms < 50


def test_acks_0_is_paced_too(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "10KB"})
    create_topic(talk, "a")
    assert send_produce(talk, "a", batch(value=bytes(30_000)), acks=0).throttle_ms > 1000


def test_a_consumer_over_its_quota_is_told_to_pause(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.consumer_quota": "10KB"})
    create_topic(talk, "a")
    produce(talk, "a", batch(value=bytes(30_000)))
    exchange = talk.send(fetch_request("a"), 12)
    assert exchange.answer.throttle_time_ms == exchange.throttle_ms > 1000
