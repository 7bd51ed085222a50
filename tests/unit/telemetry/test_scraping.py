"""Exporters that answer, and those that do not."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from barnabas.telemetry.messages import Snapshot, Tick
from barnabas.telemetry.readings import Tally
from barnabas.telemetry.scraping import EndpointError, Outage, Recovery, endpoint, scrape


class FakeClock:
    def __init__(self) -> None:
        self.time_s = 0.0

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


class Exporter(BaseHTTPRequestHandler):
    """Answers with the temperature 41, 42, 43 ...; breaks down where asked to."""

    scrapes = 0
    broken_at: tuple[int, ...] = ()

    def do_GET(self) -> None:
        kind = type(self)
        kind.scrapes += 1
        if kind.scrapes in kind.broken_at:
            self.send_error(503)
            return
        self.send_response(200)
        self.end_headers()
        line = f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-1"}} {40 + kind.scrapes}\n'
        self.wfile.write(line.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@contextmanager
def exporter(*broken_at: int) -> Iterator[str]:
    handler = type("Own", (Exporter,), {"scrapes": 0, "broken_at": broken_at})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def temperatures(found: list[object]) -> list[float]:
    return [each.metrics["DCGM_FI_DEV_GPU_TEMP"] for each in found if isinstance(each, Snapshot)]


def test_every_round_asks_again_after_the_interval() -> None:
    clock = FakeClock()
    with exporter() as url:
        found = list(scrape([url], interval_s=30, rounds=3, clock=clock, tally=Tally()))
    assert temperatures(list(found)) == [41, 42, 43]
    assert clock.time_s == 60


def test_a_host_that_is_down_is_reported_and_asked_again() -> None:
    with exporter(2) as shaky, exporter() as steady:
        urls = [shaky, steady]
        found = list(scrape(urls, interval_s=1, rounds=3, clock=FakeClock(), tally=Tally()))
    assert temperatures(list(found)) == [41, 41, 42, 43, 43]
    (outage,) = [each for each in found if isinstance(each, Outage)]
    assert outage.url == shaky
    assert "503" in outage.reason
    assert found[found.index(outage) + 2 :][0] == Recovery(shaky)
    assert not any(isinstance(each, Tick) for each in found)


def test_where_nobody_answers_time_goes_on() -> None:
    with exporter(1) as url:
        found = list(scrape([url], interval_s=1, rounds=2, clock=FakeClock(), tally=Tally()))
    assert [type(each).__name__ for each in found] == ["Outage", "Tick", "Recovery", "Snapshot"]


def test_an_outage_is_news_once() -> None:
    with exporter(1, 2, 4) as url:
        found = list(scrape([url], interval_s=1, rounds=4, clock=FakeClock(), tally=Tally()))
    assert [each.is_first for each in found if isinstance(each, Outage)] == [True, False, True]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("node-1", "http://node-1:9400/metrics"),
        ("node-1:9500", "http://node-1:9500/metrics"),
        ("http://node-1:9400", "http://node-1:9400/metrics"),
        ("https://node-1/gpu?x=1", "https://node-1/gpu?x=1"),
    ],
)
def test_addresses_are_completed(given: str, url: str) -> None:
    assert endpoint(given) == url


@pytest.mark.parametrize("given", ["file:///etc/passwd", "http://", "ftp://x"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(EndpointError, match="is no address; write http"):
        endpoint(given)
