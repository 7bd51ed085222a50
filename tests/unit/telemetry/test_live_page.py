"""Tests the live page: one report at a time, cached for a while, with its age and errors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from barnabas.telemetry.lake.lake_reading import Lake, LakeError
from barnabas.telemetry.report.gathering import gather
from barnabas.telemetry.report.live import LivePage, LiveServer
from barnabas.telemetry.report.report_model import Report, Wish
from tests.support.pipelines.lake import START, fleet_of, write_lake

END_S = START.timestamp() + 600


class Source:
    """Creates reports, counts them, and fails on request."""

    def __init__(self, folder: Path) -> None:
        self.report: Report = gather(Lake(folder), Wish(title="Live"))
        self.asked = 0
        self.failure: Exception | None = None
        self.now_s = END_S + 60

    def __call__(self) -> Report:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return self.report

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(write_lake(tmp_path, fleet_of(8, windows=60, seed=1)))


@pytest.fixture
def live(source: Source) -> LivePage:
    return LivePage(source, 30.0, source.clock)


def test_a_report_is_kept_for_the_refresh_interval(source: Source, live: LivePage) -> None:
    for _ in range(5):
        text = live.html()
    assert source.asked == 1
    assert "<h1>Live</h1>" in text
    assert '<meta http-equiv="refresh" content="30">' in text
    source.now_s += 30
    live.html()
    assert source.asked == 2


def test_the_page_says_how_old_the_data_is(source: Source, live: LivePage) -> None:
    assert "The newest data is 1 min" in live.html()
    assert live.document()["data_age_s"] == 60
    source.now_s += 3600
    assert "Do the jobs run" in live.html()


def test_a_failure_is_shown_above_the_last_report(source: Source, live: LivePage) -> None:
    live.html()
    source.failure = LakeError("the lake <is> gone")
    source.now_s += 60
    text = live.html()
    assert "the lake &lt;is&gt; gone" in text
    assert "Shown is the report of" in text
    assert "<h1>Live</h1>" in text
    assert live.document()["failure"] == "the lake <is> gone"
    source.failure = None
    source.now_s += 60
    assert "Gathering failed" not in live.html()


def test_a_failure_without_a_report_is_tried_again_later(source: Source, live: LivePage) -> None:
    source.failure = RuntimeError("no luck")
    for _ in range(3):
        assert "RuntimeError: no luck" in live.html()
    assert source.asked == 1


def test_while_one_request_gathers_others_get_the_report_before(source: Source) -> None:
    begun, go_on = threading.Event(), threading.Event()
    is_first = True

    def slow() -> Report:
        nonlocal is_first
        if not is_first:
            begun.set()
            assert go_on.wait(60)
        is_first = False
        return source()

    live = LivePage(slow, 30.0, source.clock)
    live.html()
    source.now_s += 31
    gathering = threading.Thread(target=live.html)
    gathering.start()
    assert begun.wait(60)
    assert "<h1>Live</h1>" in live.html()
    assert source.asked == 1
    go_on.set()
    gathering.join()
    assert source.asked == 2


@contextmanager
def served(live: LivePage) -> Iterator[HTTPConnection]:
    with LiveServer(("127.0.0.1", 0), live) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        yield connection
        connection.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("HEAD", "/", 200),
        ("GET", "/report.json", 200),
        ("GET", "/../../etc/passwd", 404),
        ("POST", "/", 501),
        ("DELETE", "/", 501),
    ],
)
def test_only_the_page_is_served_and_only_read(
    live: LivePage, method: str, path: str, status: int
) -> None:
    with served(live) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status == status
        assert bool(answer.read()) is (method != "HEAD")
        assert status != 200 or "default-src 'none'" in answer.headers["Content-Security-Policy"]
