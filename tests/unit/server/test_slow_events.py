"""Tests the report of events that block the event loop: their names and durations."""

import gc
import json
import threading
import time
from functools import partial
from io import StringIO
from typing import Any

import pytest

from barnabas.effects import Notice, Remove
from barnabas.handlers import registry
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.server.slow_events import KEPT_MAX, SlowEvents, name_of
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.talk.rows import handler_of, with_handler

LIMIT_MS = 10


class Clock:
    """A clock that moves only when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def pass_ms(self, duration_ms: float) -> None:
        self.now_ns += int(duration_ms * 1_000_000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def events(clock: Clock) -> SlowEvents:
    return SlowEvents(LIMIT_MS, clock, lambda: 0)


def test_only_events_over_the_limit_are_counted(events: SlowEvents, clock: Clock) -> None:
    for duration_ms in (1, 9, 12, 3):
        events.run(clock.pass_ms, duration_ms)
    assert events.count == 1
    assert [event.duration_ms for event in events.last] == [12.0]
    assert events.longest.what == "Clock.pass_ms"


def test_the_longest_is_known_below_the_limit_too(events: SlowEvents, clock: Clock) -> None:
    for duration_ms in (1, 9, 3):
        events.run(clock.pass_ms, duration_ms)
    assert (events.count, events.longest.duration_ms) == (0, 9.0)


def test_the_last_ones_are_kept(events: SlowEvents, clock: Clock) -> None:
    for number in range(KEPT_MAX + 5):
        events.run(clock.pass_ms, 100 + number)
    assert events.count == KEPT_MAX + 5
    assert len(events.last) == KEPT_MAX
    assert events.last[-1].duration_ms == 100.0 + KEPT_MAX + 4


def test_the_longest_step_is_named(events: SlowEvents, clock: Clock) -> None:
    def part(name: str, duration_ms: int) -> None:
        events.step(lambda: (name, {"of": "three"}), clock.pass_ms, duration_ms)

    def event() -> None:
        part("first", 3)
        part("second", 8)
        part("third", 2)

    events.run(event)
    assert (events.last[0].step, events.last[0].step_ms) == ("second", 8.0)
    assert events.last[0].facts == {"of": "three"}


def test_an_event_does_not_inherit_steps(events: SlowEvents, clock: Clock) -> None:
    events.run(lambda: events.run_timer(lambda: clock.pass_ms(20)))
    events.run(clock.pass_ms, 20)
    assert [event.step_ms for event in events.last] == [20.0, 0.0]


def test_an_event_that_fails_is_timed_and_fails(events: SlowEvents, clock: Clock) -> None:
    def fail() -> None:
        clock.pass_ms(20)
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        events.run(fail)
    assert events.count == 1


def test_effects_are_named_by_their_kinds(events: SlowEvents, clock: Clock) -> None:
    carry_out = events.carrying_out(lambda _: clock.pass_ms(30))
    notice, remove = Notice("info", "something", {}), Remove(("path",), 0)
    events.run(carry_out, [notice, remove, notice])
    assert events.last[0].step == "effects"
    assert events.last[0].facts == {"effects": "Notice, Remove", "count": 3}


def test_a_garbage_collection_is_a_step_of_its_event(events: SlowEvents, clock: Clock) -> None:
    def collect() -> None:
        events._on_collection("start", {"generation": 2})
        clock.pass_ms(40)
        events._on_collection("stop", {"generation": 2, "collected": 7})

    events.run(collect)
    assert (events.last[0].step, events.last[0].step_ms) == ("garbage collection", 40.0)
    assert events.last[0].facts == {"generation": 2, "collected": 7}


def test_a_garbage_collection_on_another_thread_counts(events: SlowEvents, clock: Clock) -> None:
    def collect() -> None:
        events._on_collection("start", {"generation": 1})
        clock.pass_ms(40)
        events._on_collection("stop", {"generation": 1, "collected": 0})

    thread = threading.Thread(target=collect)
    thread.start()
    thread.join()
    assert [event.what for event in events.last] == ["garbage collection"]


def test_collections_are_observed_from_the_start_to_the_end(events: SlowEvents) -> None:
    before = list(gc.callbacks)
    events.start()
    assert gc.callbacks != before
    events.close()
    assert gc.callbacks == before
    events.close()


def test_a_callback_is_named_with_what_it_encloses() -> None:
    def chore() -> None: ...

    def turn() -> None:
        chore()

    assert name_of(turn).endswith("turn (" + chore.__qualname__ + ")")
    assert name_of(partial(json.dumps, {})) == "dumps"
    assert name_of(StringIO().getvalue) == "StringIO.getvalue"


# --- in a broker ---


def lines(log: StringIO) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in found if line["event"] == "an event held up the loop"]


@pytest.fixture
def slow_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each Metadata request take a minute on the clock that times events."""
    passed_ns = [0]
    row = registry.SERVED[ApiKey.METADATA]

    def handle(node: Any, request: Any, context: Any) -> Any:
        passed_ns[0] += 60_000 * 1_000_000
        return handler_of(row)(node, request, context)

    def events_with_clock(limit_ms: float) -> SlowEvents:
        return SlowEvents(limit_ms, lambda: time.monotonic_ns() + passed_ns[0])

    monkeypatch.setitem(registry.SERVED, ApiKey.METADATA, with_handler(row, handle))
    monkeypatch.setattr("barnabas.server.server.SlowEvents", events_with_clock)


def ask_metadata(broker: Broker) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    with RawClient((host, int(port))) as client:
        client.ask(MetadataRequest(topics=None), 12, MetadataResponse)


def test_a_broker_logs_what_held_it_up(log: StringIO, slow_metadata: None) -> None:
    with Broker(settings={"performance.slow_event_time": "30s"}) as broker:
        ask_metadata(broker)
        assert broker._process is not None
        events = broker._process.server.slow_events
        assert events is not None
        eventually(lambda: events.count)  # the response is sent before its event ends
        assert (events.count, events.longest.step) == (1, "Metadata v12")
    (line,) = lines(log)
    assert line["what"].endswith(".on_readable")
    assert (line["step"], line["client_id"], line["client"]) == ("Metadata v12", "raw", "127.0.0.1")
    assert line["bytes"] > 0
    assert line["duration_ms"] >= line["step_ms"] >= 60_000


def test_a_timer_is_named(log: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("barnabas.server.server.SlowEvents", lambda ms: SlowEvents(ms, clock))
    with Broker(settings={"performance.slow_event_time": "30s"}) as broker:
        assert broker._process is not None
        assert broker._loop is not None
        server = broker._process.server

        def look_over_everything() -> None:
            clock.pass_ms(60_000)

        def arm() -> None:
            server.node.timers.after(1, look_over_everything)

        broker._loop.call_soon_threadsafe(server.run_event, arm)
        (line,) = eventually(lambda: lines(log))
    assert line["what"] == "Server._on_timer"
    assert "look_over_everything" in line["step"]


def test_nothing_is_timed_unless_the_operator_asks_for_it(log: StringIO) -> None:
    before = list(gc.callbacks)
    with Broker() as broker:
        ask_metadata(broker)
        assert broker._process is not None
        assert broker._process.server.slow_events is None
        assert gc.callbacks == before
    assert lines(log) == []
