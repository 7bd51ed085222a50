"""Serves the report as a page that refreshes itself: `report --serve HOST:PORT`.

    LivePage      gathers at most one report at a time, and none before the last is `refresh_s` old
    LiveServer    answers only GET and HEAD of / and /report.json

Without requests no report is gathered. A request that finds the report too old gathers a new one;
other requests meanwhile get the previous one. If gathering fails, the page says so, and since when,
above the last report.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from barnabas.telemetry.lake.lake_reading import LakeError
from barnabas.telemetry.report.report_model import Report
from barnabas.telemetry.report.report_page import page
from barnabas.telemetry.report.report_wording import duration, moment
from barnabas.telemetry.report.summary import document

REQUESTS_AT_ONCE = 32
SOCKET_TIMEOUT_S = 20.0
LATE_AFTER_S = 300.0
"""Windows close a minute and a half behind the samples; the page warns about older data."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
STYLE = "padding:.6rem 1rem;border-left:.3rem solid"


@dataclass(frozen=True)
class Gathered:
    """The last report, and the result of the last gathering."""

    report: Report | None
    page: str
    at_s: float
    """When the report was gathered; 0 if there is none."""
    tried_at_s: float
    failure: str = ""
    """The reason why the last gathering failed; empty if it did not."""


class LivePage:
    """The report on a lake, refreshed after `refresh_s`."""

    def __init__(
        self,
        gather: Callable[[], Report],
        refresh_s: float,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._gather = gather
        self._now_s = now_s
        self.refresh_s = refresh_s
        self._gathering = threading.Lock()
        self._latest = Gathered(None, "", 0.0, 0.0)

    def latest(self) -> Gathered:
        """Return the report; gather it if it is too old and no other request does so."""
        if self._is_fresh():
            return self._latest
        has_any = bool(self._latest.tried_at_s)
        if self._gathering.acquire(blocking=not has_any):
            try:
                if not self._is_fresh():
                    self._latest = self._gathered()
            finally:
                self._gathering.release()
        return self._latest

    def html(self) -> str:
        """Return the page, with its age."""
        found = self.latest()
        notice = self._notice(found)
        refresh = f'<meta http-equiv="refresh" content="{max(1, round(self.refresh_s))}">'
        if found.report is None:
            return (
                f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{refresh}'
                f"<title>GPU fleet report</title></head><body>{notice}</body></html>\n"
            )
        whole = found.page.replace("<head>", f"<head>{refresh}", 1)
        return whole.replace("<main>", f"<main>{notice}", 1)

    def document(self) -> dict[str, Any]:
        """Return the report for programs, with its age."""
        found = self.latest()
        about = {
            "gathered": _iso(found.at_s) if found.report else None,
            "data_age_s": self._data_age_s(found),
            "failure": found.failure or None,
        }
        return about | ({} if found.report is None else document(found.report))

    def _is_fresh(self) -> bool:
        return 0 <= self._now_s() - self._latest.tried_at_s < self.refresh_s

    def _gathered(self) -> Gathered:
        before = self._latest
        try:
            report = self._gather()
            drawn = page(report)
        except Exception as error:  # noqa: BLE001 - the page tells it, and the next look tries again
            why = str(error) if isinstance(error, LakeError) else f"{type(error).__name__}: {error}"
            return Gathered(before.report, before.page, before.at_s, self._now_s(), why)
        now_s = self._now_s()
        return Gathered(report, drawn, now_s, now_s)

    def _data_age_s(self, found: Gathered) -> float | None:
        newest_s = found.report.quality.newest_s if found.report else None
        return None if newest_s is None else max(0.0, self._now_s() - newest_s)

    def _notice(self, found: Gathered) -> str:
        lines = []
        age_s = self._data_age_s(found)
        if age_s is not None:
            late = age_s > LATE_AFTER_S
            word = "The newest data is"
            text = f"{word} {duration(age_s)} old; this page was made {self._ago(found.at_s)}."
            if late:
                text += " Do the jobs run, and do samples come?"
            lines.append(_line(text, "#c80" if late else "#888"))
        if found.failure:
            text = f"Gathering failed {self._ago(found.tried_at_s)}: {found.failure}"
            shown = f" Shown is the report of {moment(found.at_s)} UTC." if found.report else ""
            lines.append(_line(text + shown, "#c00"))
        return "".join(lines)

    def _ago(self, at_s: float) -> str:
        return f"{duration(max(0.0, self._now_s() - at_s))} ago"


def _line(text: str, colour: str) -> str:
    return f'<p class="live" role="status" style="{STYLE} {colour}">{escape(text)}</p>'


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class LiveServer(ThreadingHTTPServer):
    """Serves a live page; a bounded number of requests at a time."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], live: LivePage) -> None:
        self.live = live
        self._places = threading.BoundedSemaphore(REQUESTS_AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - stdlib's
        """Start a thread for a connection, or close it if there are too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - stdlib's
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    timeout = SOCKET_TIMEOUT_S

    def do_GET(self) -> None:
        """Answer with the page."""
        live = self.server.live
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", live.html())
        elif path == "/report.json":
            text = json.dumps(live.document(), ensure_ascii=False)
            self._answer(HTTPStatus.OK, "application/json", text)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "There is / and /report.json\n")

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log single requests."""
