"""Tests exporters that respond, and those that do not."""

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

from barnabas.telemetry.collect.scraping import Outage, Recovery, Round, Scrape, Scraping
from barnabas.telemetry.collect.targets import Access, EndpointError, Target, endpoint
from barnabas.telemetry.samples.readings import Tally
from barnabas.telemetry.samples.sample_messages import Snapshot, Tick
from tests.support.pipelines.canned_http import Canned, answer, trickle

Serve = Callable[..., Canned]
BUSY = answer(b"", "503 Busy")


def page(value: float) -> bytes:
    return answer(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-1"}} {value}\n'.encode())


class FakeClock:
    def __init__(self) -> None:
        self.time_s = 0.0

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


def scraping(urls: Sequence[str], **how: Any) -> Scraping:
    targets = [Target(url=url) for url in urls]
    given = {"interval_s": 1, "clock": FakeClock(), "tally": Tally(), **how}
    return Scraping(lambda: targets, **given)


def scrape(urls: Sequence[str], **how: Any) -> list[Any]:
    return [each for each in scraping(urls, **how) if not isinstance(each, Round)]


def temperatures(found: Sequence[object]) -> list[float]:
    return [each.metrics["DCGM_FI_DEV_GPU_TEMP"] for each in found if isinstance(each, Snapshot)]


def names(found: Sequence[object]) -> list[str]:
    return [type(each).__name__ for each in found]


def test_every_round_asks_again_after_the_interval(serve: Serve) -> None:
    clock = FakeClock()
    server = serve(page(41), page(42), page(43))
    found = scrape([server.url], interval_s=30, rounds=3, clock=clock)
    assert temperatures(found) == [41, 42, 43]
    assert clock.time_s == 60


def test_a_host_that_is_down_is_reported_and_asked_again(serve: Serve) -> None:
    shaky, steady = serve(page(41), BUSY, page(43)), serve(page(51), page(52), page(53))
    found = scrape([shaky.url, steady.url], rounds=3)
    assert sorted(temperatures(found)) == [41, 43, 51, 52, 53]
    (outage,) = [each for each in found if isinstance(each, Outage)]
    assert (outage.url, outage.reason) == (shaky.url, "answered 503 Busy")
    assert [each for each in found if isinstance(each, Recovery)] == [Recovery(shaky.url)]
    assert not any(isinstance(each, Tick) for each in found)


def test_time_passes_without_a_response(serve: Serve) -> None:
    found = scrape([serve(BUSY, page(42)).url], rounds=2)
    assert names(found) == ["Outage", "Tick", "Recovery", "Snapshot", "Scrape"]
    assert isinstance(found[-1], Scrape)
    assert found[-1].samples == 1


def test_an_outage_is_news_once(serve: Serve) -> None:
    found = scrape([serve(BUSY, BUSY, page(43), BUSY).url], rounds=4)
    assert [each.is_first for each in found if isinstance(each, Outage)] == [True, False, True]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (answer(b'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 12', length=44), "cut short"),
        (b'HTTP/1.0 200 OK\r\n\r\nDCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 12', "cut short"),
        (answer(b""), "empty page"),
        (answer(b"<html>Please log in</html>\n"), "without metrics of DCGM"),
    ],
)
def test_a_page_that_is_not_whole_or_foreign_is_an_outage(
    serve: Serve, sent: bytes, reason: str
) -> None:
    outage, tick = scrape([serve(sent).url], rounds=1)
    assert isinstance(outage, Outage)
    assert reason in outage.reason
    assert isinstance(tick, Tick)


def test_an_exporter_that_trickles_does_not_delay_others(serve: Serve) -> None:
    slow, quick = serve(trickle), serve(page(41))
    found = scrape([slow.url, quick.url], rounds=2, timeout_s=0.3)
    assert names(found) == ["Snapshot", "Scrape", "Outage"] * 2


def test_a_stop_hands_on_what_has_come_and_waits_for_no_more(serve: Serve) -> None:
    slow, quick = serve(trickle), serve(page(41))
    stop = Event()
    found = []
    for each in scraping([slow.url, quick.url], timeout_s=600, is_stopping=stop.is_set):
        found.append(each)
        stop.set() if isinstance(each, Snapshot) else None
    assert names(found) == ["Round", "Snapshot", "Scrape"]


def test_rounds_whose_time_has_passed_are_skipped(serve: Serve) -> None:
    clock = FakeClock()
    rounds = []
    for each in scraping([serve(page(41)).url], interval_s=10, rounds=3, clock=clock):
        if isinstance(each, Round):
            rounds.append((clock.time_s, each.skipped))
            clock.time_s += 35 if len(rounds) == 1 else 1
    assert rounds == [(0, 0), (35, 2), (40, 0)]


def test_targets_come_and_go(serve: Serve) -> None:
    first, second = serve(page(41)), serve(page(42))
    lists = [[Target(url=first.url)], [Target(url=first.url), Target(url=second.url)], []]
    found = list(
        Scraping(lambda: lists.pop(0), interval_s=1, rounds=3, clock=FakeClock(), tally=Tally())
    )
    assert [len(each.targets) for each in found if isinstance(each, Round)] == [1, 2, 0]
    assert sorted(temperatures(found)) == [41, 41, 42]
    assert isinstance(found[-1], Tick)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("node-1", "http://node-1:9400/metrics"),
        ("node-1:9500", "http://node-1:9500/metrics"),
        ("http://node-1:9400", "http://node-1:9400/metrics"),
        ("https://node-1/gpu?x=1", "https://node-1/gpu?x=1"),
        ("[::1]:9400", "http://[::1]:9400/metrics"),
    ],
)
def test_addresses_are_completed(given: str, url: str) -> None:
    assert endpoint(given).url == url


@pytest.mark.parametrize(
    "given", ["file:///etc/passwd", "http://", "ftp://x", "h:99999", "h:x", "http://[::1/", "a b"]
)
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(EndpointError, match="; write"):
        endpoint(given)


def test_a_password_in_an_address_is_used_and_never_shown(serve: Serve) -> None:
    target = endpoint("http://me:s3%40cret@node-1:9400")
    assert target.url == "http://node-1:9400/metrics"
    assert target.access == Access(username="me", password="s3@cret")
    assert "s3" not in repr(target)
    with pytest.raises(EndpointError) as caught:
        endpoint("http://me:s3cret@node-1:99999")
    assert "s3cret" not in str(caught.value)
    server = serve(page(41))
    own = endpoint(f"http://me:s3cret@{server.address}")
    found = list(Scraping(lambda: [own], interval_s=1, rounds=1, clock=FakeClock(), tally=Tally()))
    assert temperatures(found) == [41]
    assert b"Authorization: Basic bWU6czNjcmV0\r\n" in server.requests[0]
    assert "s3cret" not in repr(found)
