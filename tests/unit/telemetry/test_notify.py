"""Tests notifications: when they are sent, their text, and what endpoints do not accept."""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.notify.endpoints import (
    Alertmanager,
    EndpointError,
    Webhook,
    checked_url,
)
from barnabas.telemetry.notify.notice import Notice, Place, UnreadableError, parse
from barnabas.telemetry.notify.outbox import Attempt, Failure, Outbox, Patience
from barnabas.telemetry.notify.silences import Silence, SilenceError, silence_from

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
URL = "http://example.org/hook"


def notice(number: int, state: str = "raised", alert: str = "a", **columns: Any) -> Notice:
    known = {
        "alert_id": alert,
        "state": state,
        "finding": "parked_memory",
        "severity": "warning",
        "gpu_id": "GPU-1",
        "gpus": ["GPU-1"],
        "hostname": "node-1",
        "model": "H200",
        "namespace": "ml",
        "first_seen": "2026-11-18T11:00:00.000Z",
        "last_seen": "2026-11-18T11:30:00.000Z",
        "value": 5.0,
        "unit": "MiB",
        "message": "GPU-1 on node-1: held",
        "action": "ask",
    }
    return Notice({**known, **columns}, Place(0, number))


def silence(**matchers: str) -> Silence:
    return Silence(
        silence_id="s",
        matchers=matchers,
        start_ms=NOW_MS - 1000,
        end_ms=NOW_MS + 1000,
        author="ada",
        reason="moving house",
    )


def webhook(**patience: float) -> Outbox:
    return Outbox(Webhook(URL), Patience(**patience))


def due(outbox: Outbox, now_s: float = 0.0, *silences: Silence) -> Attempt | None:
    return outbox.due(now_s, NOW_MS, silences)


def offsets(attempt: Attempt | None) -> list[int | None]:
    assert attempt is not None
    return [each.place.offset if each.place else None for each in attempt.notices]


# The outbox


def test_an_offset_is_settled_once_the_endpoint_has_the_alert() -> None:
    outbox = webhook()
    outbox.take(notice(7))
    outbox.take(notice(8, "cleared"))
    attempt = due(outbox)
    assert attempt is not None
    assert offsets(attempt) == [7, 8]
    assert outbox.settled() == {}
    outbox.succeeded(attempt, 0.0)
    assert outbox.settled() == {0: 9}
    assert due(outbox) is None
    outbox.committed({0: 9})
    assert outbox.settled() == {}


def test_a_failure_is_tried_again_later_and_later_and_then_given_up_with_a_count() -> None:
    outbox = webhook(first_wait_s=1, wait_max_s=8, give_up_after_s=30)
    outbox.take(notice(7))
    times: list[float] = []
    lost: tuple[Notice, ...] = ()
    now_s = 0.0
    while not lost:
        attempt = due(outbox, now_s)
        if attempt is not None:
            times.append(now_s)
            lost = outbox.failed(attempt, Failure.TROUBLE, now_s)
        now_s += 1.0
    assert times == [0, 1, 3, 7, 15, 23, 31]
    assert [each.alert_id for each in lost] == ["a"]
    assert outbox.counts["given_up"] == 1
    assert outbox.settled() == {0: 8}


def test_of_alerts_that_are_refused_together_only_the_bad_one_is_given_up() -> None:
    outbox = webhook()
    for number in range(4):
        outbox.take(notice(number, alert=f"a{number}"))
    given_up: list[str] = []
    while (attempt := due(outbox)) is not None:
        if any(each.alert_id == "a2" for each in attempt.notices):
            given_up += [e.alert_id for e in outbox.failed(attempt, Failure.REFUSED, 0.0)]
        else:
            outbox.succeeded(attempt, 0.0)
    assert given_up == ["a2"]
    assert outbox.counts["delivered"] == 3
    assert outbox.settled() == {0: 4}


def test_silenced_alerts_are_settled_and_not_sent() -> None:
    outbox = webhook()
    outbox.take(notice(0, gpu_id="GPU-1"))
    outbox.take(notice(1, alert="b", hostname="node-2"))
    attempt = due(outbox, 0.0, silence(host="node-1"))
    assert attempt is not None
    assert [each.alert_id for each in attempt.notices] == ["b"]
    outbox.succeeded(attempt, 0.0)
    assert outbox.settled() == {0: 2}
    assert outbox.counts == {"delivered": 1, "silenced": 1}


def test_alertmanager_is_sent_firing_alerts_again_until_they_clear() -> None:
    outbox = Outbox(Alertmanager("http://am:9093", resend_s=60))
    outbox.take(notice(0))
    first = due(outbox)
    assert first is not None
    outbox.succeeded(first, 0.0)
    assert due(outbox, 59.0) is None
    again = due(outbox, 60.0)
    assert again is not None
    assert again.taken == 0
    outbox.succeeded(again, 60.0)
    outbox.take(notice(1, "cleared"))
    last = due(outbox, 61.0)
    assert last is not None
    outbox.succeeded(last, 61.0)
    assert due(outbox, 1000.0) is None


def test_after_a_restart_alertmanager_gets_active_alerts_and_a_webhook_does_not() -> None:
    for outbox, wanted in ((webhook(), []), (Outbox(Alertmanager("http://am:9093")), ["a"])):
        outbox.restore(notice(0))
        outbox.restore(notice(1, alert="b"))
        outbox.restore(notice(2, "cleared", alert="b"))
        attempt = due(outbox)
        found = [each.alert_id for each in attempt.notices] if attempt else []
        assert found == wanted


def test_a_first_start_sends_active_alerts_and_commits_the_end() -> None:
    outbox = webhook()
    for number, (alert, state) in enumerate([("a", "raised"), ("b", "raised"), ("b", "cleared")]):
        outbox.restore(notice(number, state, alert))
    outbox.announce(0, 40)
    attempt = due(outbox)
    assert attempt is not None
    assert [each.alert_id for each in attempt.notices] == ["a"]
    outbox.succeeded(attempt, 0.0)
    assert outbox.settled() == {0: 40}


def test_an_alert_that_grows_graver_ends_under_its_old_labels() -> None:
    outbox = Outbox(Alertmanager("http://am:9093"))
    outbox.take(notice(0))
    outbox.take(notice(1, severity="critical"))
    attempt = due(outbox)
    assert attempt is not None
    sent = json.loads(Alertmanager("http://am:9093").post(attempt.notices, NOW, None).body)
    ends = {each["labels"]["severity"]: each["endsAt"] <= "2026-11-18T12:00" for each in sent}
    assert ends == {"warning": True, "critical": False}


def test_a_partition_that_went_elsewhere_is_forgotten() -> None:
    outbox = webhook()
    outbox.take(notice(3))
    outbox.forget(0)
    assert due(outbox) is None
    assert outbox.settled() == {}


@given(st.lists(st.sampled_from(["take", "ok", "trouble", "refused", "wait"]), max_size=60))
def test_no_alert_is_lost_without_being_counted(events: list[str]) -> None:
    outbox = webhook(first_wait_s=1, wait_max_s=4, give_up_after_s=10)
    now_s, taken, done = 0.0, 0, 0
    for event in events:
        now_s += 1.0
        attempt = due(outbox, now_s)
        if event == "take":
            outbox.take(notice(taken, alert=f"a{taken}"))
            taken += 1
        elif event == "ok" and attempt is not None:
            outbox.succeeded(attempt, now_s)
            done += len(attempt.notices)
        elif event != "wait" and attempt is not None:
            failure = Failure.TROUBLE if event == "trouble" else Failure.REFUSED
            done += len(outbox.failed(attempt, failure, now_s))
    assert outbox.settled().get(0, 0) == done
    assert outbox.counts["delivered"] + outbox.counts["given_up"] == done
    now_s += 100
    while (attempt := due(outbox, now_s)) is not None:
        done += len(attempt.notices)
        outbox.succeeded(attempt, now_s)
    assert done == taken


# Bodies


def test_a_webhook_gets_the_records_with_their_places_and_a_signature() -> None:
    post = Webhook(URL).post([notice(7)], NOW, b"secret")
    (alert,) = json.loads(post.body)["alerts"]
    assert (alert["alert_id"], alert["partition"], alert["offset"]) == ("a", 0, 7)
    stamp = post.headers["X-Barnabas-Timestamp"]
    expected = hmac.new(b"secret", f"{stamp}.".encode() + post.body, hashlib.sha256).hexdigest()
    assert post.headers["X-Barnabas-Signature"] == f"sha256={expected}"
    assert "X-Barnabas-Signature" not in Webhook(URL).post([notice(7)], NOW, None).headers


def test_alertmanager_gets_labels_annotations_and_times() -> None:
    endpoint = Alertmanager("http://am:9093/", resend_s=60, generator_url="http://page/")
    post = endpoint.post([notice(0, gpus=["GPU-1", "GPU-2"])], NOW, b"secret")
    assert post.url == "http://am:9093/api/v2/alerts"
    assert json.loads(post.body) == [
        {
            "labels": {
                "alertname": "gpu_parked_memory",
                "finding": "parked_memory",
                "severity": "warning",
                "host": "node-1",
                "gpu": "GPU-1",
                "namespace": "ml",
                "model": "H200",
            },
            "annotations": {
                "summary": "GPU-1 on node-1: held",
                "action": "ask",
                "gpus": "GPU-1, GPU-2",
                "value": "5.0 MiB",
                "state": "raised",
                "alert_id": "a",
            },
            "startsAt": "2026-11-18T11:00:00.000Z",
            "endsAt": "2026-11-18T12:05:00.000Z",
            "generatorURL": "http://page/",
        }
    ]


def test_a_cleared_alert_has_ended_for_any_clock_of_the_card() -> None:
    ahead = notice(
        1, "cleared", first_seen="2026-11-18T12:00:10Z", last_seen="2026-11-18T12:00:20Z"
    )
    (alert,) = json.loads(Alertmanager("http://am").post([ahead], NOW, None).body)
    assert alert["startsAt"] == alert["endsAt"] == "2026-11-18T12:00:00.000Z"


def test_of_two_alerts_with_the_same_labels_alertmanager_gets_the_last() -> None:
    pair = [notice(0, "cleared"), notice(1, alert="b")]
    (alert,) = json.loads(Alertmanager("http://am").post(pair, NOW, None).body)
    assert alert["annotations"]["alert_id"] == "b"


@pytest.mark.parametrize("text", ["example.org", "ftp://example.org", "http://", "http://u:p@h/"])
def test_addresses_that_cannot_be(text: str) -> None:
    with pytest.raises(EndpointError, match="--webhook"):
        checked_url(text, "--webhook")


# Silences and records


@pytest.mark.parametrize(
    ("matchers", "is_silenced"),
    [
        ({"host": "node-1"}, True),
        ({"host": "node-*", "finding": "parked_memory"}, True),
        ({"host": "node-1", "finding": "xid"}, False),
        ({"namespace": "m?"}, True),
        ({"gpu": "GPU-1"}, False),
        ({"gpu": "GPU-*"}, True),
    ],
)
def test_a_silence_matches_when_all_its_patterns_do(
    matchers: dict[str, str], is_silenced: bool
) -> None:
    about = notice(0, gpus=["GPU-1", "GPU-2"])
    assert silence(**matchers).matches(about) is is_silenced


def test_a_silence_comes_back_from_its_record_and_holds_for_its_time() -> None:
    made = silence(host="node-1")
    assert silence_from(made.to_json()) == made
    assert [made.is_active(NOW_MS + shift) for shift in (-1001, -1000, 999, 1000)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"silence_id": 1, "matchers": 5}'])
def test_what_is_no_silence(value: bytes) -> None:
    with pytest.raises(SilenceError):
        silence_from(value)


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"alert_id": "a"}', b"\xff"])
def test_what_is_no_alert(value: bytes | None) -> None:
    with pytest.raises(UnreadableError):
        parse(value, Place(0, 0))
