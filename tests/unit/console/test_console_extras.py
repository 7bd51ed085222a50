"""Tests what the console shows from elsewhere: a lake's report, an Alertmanager."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.console.made_states import FakeWatcher, make_state
from tests.support.console.running_console import RunningConsole

ALERT = {
    "labels": {"alertname": "DiskLow", "severity": "warning", "instance": "b1"},
    "annotations": {"summary": "<b>full</b>", "runbook_url": "javascript:alert(1)"},
    "startsAt": "2026-03-01T12:00:00.000Z",
    "status": {"state": "active"},
}


def test_the_report_of_a_lake_is_figures_and_a_framed_page(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")
    from tests.support.pipelines.lake import story, write_lake

    lake = write_lake(tmp_path / "lake", [story(1, 60).during("idle", 0, 30)])
    with RunningConsole(FakeWatcher(make_state()), lake=lake) as console:
        assert console.get("/api/session")["features"]["telemetry"] is True
        found = console.get("/api/telemetry")
        assert found["summary"]["gpus"] == 1
        assert {each["finding"] for each in found["findings"]} == {"idle"}
        page = console.raw("GET", "/api/telemetry/report")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts;")
        assert "frame-ancestors 'self'" in policy
        assert page.headers["x-frame-options"] == "SAMEORIGIN"


def test_without_a_lake_the_answer_says_what_to_set(tmp_path: Path) -> None:
    with RunningConsole(FakeWatcher(make_state())) as console:
        assert "--lake DIR" in console.get("/api/telemetry", 404)["error"]
    with RunningConsole(FakeWatcher(make_state()), lake=tmp_path / "none") as console:
        assert console.get("/api/telemetry", 404)["code"] == "not_found"


@pytest.fixture
def manager() -> Iterator[tuple[str, list[Any]]]:
    """An Alertmanager that answers with a list."""
    answer: list[Any] = [ALERT]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(answer).encode() if self.path == "/api/v2/alerts" else b"{"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing to stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    server.server_close()
    thread.join()


def test_alerts_of_an_alertmanager_are_listed_beside_ours(
    manager: tuple[str, list[Any]],
) -> None:
    watcher = FakeWatcher(make_state())
    with RunningConsole(watcher, alertmanager=manager[0]) as console:
        answer = console.raw("GET", "/api/alerts")
        assert b"<b>" not in answer.content
        first = answer.json()["items"][0]
    assert (first["name"], first["state"], first["source"]) == ("DiskLow", "firing", "alertmanager")
    assert first["since_ms"] == 1_772_366_400_000
    assert first["runbook"] is None  # a link must not run a script
    assert [each["name"] for each in answer.json()["items"]].count("DiskLow") == 1


def test_an_alertmanager_that_is_away_is_said_and_ours_stay() -> None:
    watcher = FakeWatcher(make_state())
    with RunningConsole(watcher, alertmanager="http://127.0.0.1:1") as console:
        found = console.get("/api/alerts")
    assert "127.0.0.1:1" in found["failure"]
    assert {each["source"] for each in found["items"]} == {"console"}


def test_an_odd_answer_of_an_alertmanager_is_a_failure(manager: tuple[str, list[Any]]) -> None:
    manager[1][:] = [{"labels": "none"}, 5]
    with RunningConsole(FakeWatcher(make_state()), alertmanager=manager[0]) as console:
        assert "as expected" in console.get("/api/alerts")["failure"]
