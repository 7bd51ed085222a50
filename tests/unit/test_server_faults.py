"""Tests defects: one client is affected, the log has a traceback, and the event loop continues."""

import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest

from barnabas import logs
from barnabas.effects import Notice
from barnabas.handlers.registry import SERVED
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.talk.rows import with_handler


@pytest.fixture
def broker(log: StringIO) -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def handle_metadata(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    def use(handler: Callable[..., Any]) -> None:
        monkeypatch.setitem(SERVED, ApiKey.METADATA, with_handler(SERVED[ApiKey.METADATA], handler))

    return use


def address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def is_served(client: RawClient) -> bool:
    return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def lines(log: StringIO, event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in found if line["event"] == event]


def fail(*_: object) -> None:
    raise RuntimeError("a fault of ours")


def fail_later(*_: object) -> Pending[Any]:
    pending: Pending[Any] = Pending()
    pending.complete(1)
    return pending.map(lambda _: 1 // 0)


def answer_nonsense(*_: object) -> object:
    return object()


@pytest.mark.parametrize("handler", [fail, fail_later, answer_nonsense])
def test_a_handler_that_fails(
    broker: Broker,
    log: StringIO,
    handle_metadata: Callable[[Callable[..., Any]], None],
    handler: Callable[..., Any],
) -> None:
    handle_metadata(handler)
    with RawClient(address(broker)) as witness, RawClient(address(broker)) as client:
        assert is_served(witness)
        client.send_request(MetadataRequest(), 9)
        assert client.was_closed()
        assert is_served(witness)
    (line,) = eventually(lambda: lines(log, "a request failed"))
    assert "Traceback" in line["exception"]


def test_an_event_that_fails(broker: Broker, log: StringIO) -> None:
    """A timer's action fails; other timers and connections continue."""
    assert broker._process is not None
    assert broker._loop is not None
    server, fired = broker._process.server, []

    def arm() -> None:
        server.node.timers.after(1, fail)
        server.node.timers.after(2, lambda: fired.append(True))

    broker._loop.call_soon_threadsafe(server.run_event, arm)
    eventually(lambda: fired)
    (line,) = eventually(lambda: lines(log, "an event failed"))
    assert "a fault of ours" in line["exception"]
    with RawClient(address(broker)) as client:
        assert is_served(client)


def test_lines_that_cannot_be_written_are_lost_and_nothing_else() -> None:
    refused: list[str] = []

    class FullDisk(StringIO):
        def write(self, text: str) -> int:
            refused.append(text)
            raise OSError(28, "No space left on device")

    logs.configure(json=True, stream=FullDisk())
    logs.get("server").error("this line is lost")
    logging.getLogger().removeHandler(logs._forward)
    assert "this line is lost" in refused[0]


def test_a_critical_notice_is_the_last_word(
    broker: Broker,
    log: StringIO,
    handle_metadata: Callable[[Callable[..., Any]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("barnabas.server.effect_runner.os._exit", codes.append)

    def contradict(node: Node, *_: object) -> Pending[object]:
        node.outbox.append(Notice("critical", "nothing is right any more", {}))
        return Pending()

    handle_metadata(contradict)
    with RawClient(address(broker)) as client:
        client.send_request(MetadataRequest(topics=None), 12)
        eventually(lambda: codes == [70])
    assert lines(log, "nothing is right any more")
