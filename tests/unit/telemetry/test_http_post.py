"""Tests one POST, and its deadline."""

import socket
import threading

import pytest

from barnabas.telemetry.notify import http_post
from barnabas.telemetry.notify.endpoints import Post
from barnabas.telemetry.notify.outbox import Failure


@pytest.mark.parametrize("first", ["alarm", "socket"])
def test_an_endpoint_that_does_not_answer_is_named_as_such_for_either_timeout(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Alarm(threading.Timer):
        def __init__(self, interval: float, *rest: object) -> None:
            super().__init__(0.01 if first == "alarm" else 60, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("threading.Timer", Alarm)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        outcome = http_post.send(Post(f"http://127.0.0.1:{port}/", {}, b"{}"), timeout_s=0.2)
    assert outcome == (Failure.TROUBLE, "no answer within 0.2 s")
