"""Sends one HTTP POST under a single deadline for the whole request and response.

Redirects are not followed: an alert is only sent to the configured address.
"""

import http.client
import socket
import ssl
import threading
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.telemetry.notify.endpoints import Post
from barnabas.telemetry.notify.outbox import Failure

WRONG_REQUEST = {400, 413, 422}
"""Codes with which the endpoint rejects a request as invalid; a retry may help for others."""
ANSWER_BYTES = 500


class Outcome(NamedTuple):
    """The result of a request."""

    failure: Failure | None
    detail: str


def send(post: Post, timeout_s: float) -> Outcome:
    """Send a request and wait for the answer, at most `timeout_s`."""
    parts = urlsplit(post.url)
    assert parts.hostname is not None, "addresses are checked when they are given"
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    is_over = threading.Event()
    alarm = threading.Timer(timeout_s, _cut, [connection, is_over])
    alarm.daemon = True
    alarm.start()
    try:
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        connection.request("POST", target, post.body, post.headers)
        answer = connection.getresponse()
        return _judged(answer.status, answer.read(ANSWER_BYTES))
    except (OSError, http.client.HTTPException, AttributeError) as error:
        # The socket's own timeout may expire just before the alarm; a connection that the alarm has
        # closed fails in many ways.
        if is_over.is_set() or isinstance(error, TimeoutError):
            return Outcome(Failure.TROUBLE, f"no answer within {timeout_s:g} s")
        return Outcome(Failure.TROUBLE, str(error) or type(error).__name__)
    finally:
        alarm.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection, is_over: threading.Event) -> None:
    is_over.set()
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _judged(status: int, answer: bytes) -> Outcome:
    if 200 <= status < 300:
        return Outcome(None, "")
    text = " ".join(answer.decode(errors="replace").split())
    detail = f"HTTP {status} {text}".strip()
    return Outcome(Failure.REFUSED if status in WRONG_REQUEST else Failure.TROUBLE, detail)
