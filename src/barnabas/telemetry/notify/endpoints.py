"""Builds the request bodies and headers for a webhook and for Alertmanager. No I/O.

Webhook: one POST with `{"version": 1, "alerts": [...]}`; an alert is the record of the topic with
its partition and offset, by which a receiver detects duplicates. With a secret, the header
X-Barnabas-Signature is `sha256=` and the hex HMAC-SHA256 of the header X-Barnabas-Timestamp, a dot
and the body.

Alertmanager: one POST to /api/v2/alerts. A firing alert has an `endsAt` in the future and is sent
again long before, so that it expires if the forwarder never returns; a cleared one has the `endsAt`
of its last finding. Its labels are its identity: the cards of an alert may change while it is
active, so they are an annotation.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlsplit

from barnabas.model.version import __version__
from barnabas.telemetry.notify.notice import Notice

ALERTS_PATH = "/api/v2/alerts"
HEADERS = {"Content-Type": "application/json", "User-Agent": f"barnabas/{__version__}"}
Identity = tuple[str, ...]


class EndpointError(ValueError):
    """An invalid address; the text says what to change."""


@dataclass(frozen=True)
class Post:
    """One request."""

    url: str
    headers: dict[str, str]
    body: bytes


class Endpoint(Protocol):
    """A receiver of alerts."""

    @property
    def kind(self) -> str:
        """Return its type, in a word."""

    @property
    def url(self) -> str:
        """Return its address."""

    @property
    def resend_s(self) -> float | None:
        """Return the interval at which a firing alert is sent again; None for never."""

    def identity(self, notice: Notice) -> Identity:
        """Return the identity of an alert for the receiver."""

    def post(self, notices: Sequence[Notice], now: datetime, secret: bytes | None) -> Post:
        """Return the request that sends alerts."""


@dataclass(frozen=True)
class Webhook:
    """Any HTTP server that accepts JSON."""

    url: str
    kind: str = "webhook"
    resend_s: float | None = None

    def identity(self, notice: Notice) -> Identity:
        """Return the alert's id."""
        return (notice.alert_id,)

    def post(self, notices: Sequence[Notice], now: datetime, secret: bytes | None) -> Post:
        """Return the alerts unchanged, signed if there is a secret."""
        document = {"version": 1, "alerts": [_located(each) for each in notices]}
        body = json.dumps(document, ensure_ascii=False).encode()
        headers = {**HEADERS, "X-Barnabas-Timestamp": str(int(now.timestamp()))}
        if secret is not None:
            stamp = headers["X-Barnabas-Timestamp"]
            headers["X-Barnabas-Signature"] = signature(secret, stamp, body)
        return Post(self.url, headers, body)


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a webhook's body."""
    signed = f"{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret, signed, hashlib.sha256).hexdigest()


def _located(notice: Notice) -> dict[str, Any]:
    place = notice.place
    where = {} if place is None else {"partition": place.partition, "offset": place.offset}
    return {**notice.columns, **where}


@dataclass(frozen=True)
class Alertmanager:
    """Prometheus Alertmanager, by its API v2."""

    url: str
    """Its address, such as http://alertmanager:9093."""
    resend_s: float = 60.0
    generator_url: str = ""
    """A link for people, such as the live report."""
    kind: str = "alertmanager"

    @property
    def expires_after_s(self) -> float:
        """Return how long a firing alert stays active without being sent again."""
        return 5 * self.resend_s

    def identity(self, notice: Notice) -> Identity:
        """Return the labels."""
        return tuple(f"{name}={value}" for name, value in sorted(_labels(notice).items()))

    def post(self, notices: Sequence[Notice], now: datetime, secret: bytes | None) -> Post:
        """Return the alerts by their labels; of several with the same labels, the last."""
        del secret  # Alertmanager does not support signatures
        latest = {self.identity(each): each for each in notices}
        alerts = [self._alert(each, now) for each in latest.values()]
        base = self.url.rstrip("/").removesuffix(ALERTS_PATH)
        return Post(base + ALERTS_PATH, dict(HEADERS), json.dumps(alerts).encode())

    def _alert(self, notice: Notice, now: datetime) -> dict[str, Any]:
        if notice.is_cleared:
            end = min(_moment(notice.text("last_seen")), now)
        else:
            end = now + timedelta(seconds=self.expires_after_s)
        annotations = {
            "summary": notice.text("message"),
            "action": notice.text("action"),
            "gpus": ", ".join(notice.gpus),
            "value": f"{notice.text('value')} {notice.text('unit')}".strip(),
            "state": notice.text("state"),
            "alert_id": notice.alert_id,
        }
        return {
            "labels": _labels(notice),
            "annotations": {name: text for name, text in annotations.items() if text},
            # Alertmanager refuses an alert that starts after its end.
            "startsAt": _iso(min(_moment(notice.text("first_seen")), end)),
            "endsAt": _iso(end),
            "generatorURL": self.generator_url,
        }


def _labels(notice: Notice) -> dict[str, str]:
    finding = notice.text("finding")
    labels = {
        "alertname": f"gpu_{finding}",
        "finding": finding,
        "severity": notice.text("severity"),
        "host": notice.text("hostname"),
        "gpu": notice.text("gpu_id"),
        "namespace": notice.text("namespace"),
        "model": notice.text("model"),
    }
    return {name: value for name, value in labels.items() if value}


def checked_url(text: str, option: str) -> str:
    """Return an address that a request can be sent to; raise with what to change."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EndpointError(f"{option} {text!r} is not an address; write http://HOST:PORT/PATH")
    if parts.username or parts.password:
        raise EndpointError(
            f"{option}: a password in an address ends up in logs; use --secret-file, or a proxy "
            "that adds it"
        )
    return text


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
