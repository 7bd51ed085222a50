"""Reads the alerts of an Alertmanager, at most once in ten seconds."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from barnabas.admin.admin_errors import AdminError

TIMEOUT_S = 5.0
FRESH_S = 10.0
ANSWER_BYTES_MAX = 8 << 20
ALERTS_MAX = 2_000
SEVERITIES = ("critical", "warning", "info")
STATES = {"active": "firing", "suppressed": "firing", "unprocessed": "pending"}


class Alertmanager:
    """The alerts of one Alertmanager."""

    def __init__(self, url: str, now_s: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise AdminError(f"--alertmanager {url!r} is not a URL such as http://127.0.0.1:9093")
        self._url = url.rstrip("/")
        self._now_s = now_s
        self._lock = threading.Lock()
        self._read_s = -FRESH_S
        self._alerts: list[dict[str, Any]] = []
        self.failure: str | None = None
        """Why the last attempt failed."""

    def alerts(self) -> list[dict[str, Any]]:
        """Return its alerts as the API lists them; the last ones where it does not answer."""
        with self._lock:
            if self._now_s() - self._read_s >= FRESH_S:
                self._read_s = self._now_s()
                self._refresh()
            return self._alerts

    def _refresh(self) -> None:
        place = f"{self._url}/api/v2/alerts"
        try:
            # The scheme was checked: http or https.
            with urllib.request.urlopen(place, timeout=TIMEOUT_S) as answer:  # noqa: S310
                found = json.loads(answer.read(ANSWER_BYTES_MAX))
            self._alerts = [_alert(each) for each in found[:ALERTS_MAX]]
            self.failure = None
        except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            self.failure = f"Alertmanager at {self._url} does not answer as expected: {error}"


def _alert(found: Mapping[str, Any]) -> dict[str, Any]:
    labels = {str(key): str(value) for key, value in found["labels"].items()}
    notes = found.get("annotations", {})
    severity = labels.get("severity", "")
    state = str(found.get("status", {}).get("state", ""))
    return {
        "name": labels.get("alertname", ""),
        "severity": severity if severity in SEVERITIES else "info",
        "state": STATES.get(state, "firing"),
        "since_ms": round(datetime.fromisoformat(found["startsAt"]).timestamp() * 1000),
        "labels": labels,
        "summary": str(notes.get("summary") or notes.get("description") or ""),
        "value": None,
        "runbook": web_address(str(notes.get("runbook_url", ""))),
        "source": "alertmanager",
    }


def web_address(text: str) -> str | None:
    """Return a URL that a page may link to; None for scripts and the like."""
    return text if urlsplit(text).scheme in ("http", "https") else None
