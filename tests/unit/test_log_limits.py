"""Tests that lines of one event are limited by rate, and that none is left out silently."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest

from barnabas import logs
from barnabas.log_limits import EVENTS_MAX, WINDOW_S, LogLimits


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(logs, "_limits", LogLimits(made))
    return made


@pytest.fixture
def log(clock: Clock) -> Iterator[StringIO]:
    stream = StringIO()
    logs.configure(json=True, level="debug", stream=stream)
    logs.limit_lines(3)
    yield stream
    logs.configure()


def lines(log: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_repeated_line_is_limited_and_the_next_says_so(clock: Clock, log: StringIO) -> None:
    logger = logs.get("server")
    for number in range(10):
        logger.warning("refused a connection", client=f"10.0.0.{number}")
        logger.info("something else") if number == 0 else None
    assert [line["event"] for line in lines(log)].count("refused a connection") == 3
    assert "something else" in {line["event"] for line in lines(log)}
    clock.now_s += WINDOW_S
    logger.warning("refused a connection", client="10.0.0.10")
    assert lines(log)[-1] | {"left_out": 7, "client": "10.0.0.10"} == lines(log)[-1]
    logger.warning("refused a connection", client="10.0.0.11")
    assert "left_out" not in lines(log)[-1]


def test_what_was_left_out_is_told_although_the_event_does_not_come_again(
    clock: Clock, log: StringIO
) -> None:
    for _ in range(8):
        logs.get("server").error("the disk refused an append")
    logs.tell_left_out()
    assert len(lines(log)) == 3, "the event may still come"
    clock.now_s += WINDOW_S
    logs.tell_left_out()
    logs.tell_left_out()
    last = lines(log)[3:]
    assert [(line["of"], line["left_out"]) for line in last] == [("the disk refused an append", 5)]


def test_lines_for_finding_a_fault_are_all_written(log: StringIO) -> None:
    for _ in range(20):
        logs.get("server").debug("lost a connection")
    assert len(lines(log)) == 20


def test_without_a_limit_all_are_written(log: StringIO) -> None:
    logs.limit_lines(0)
    for _ in range(500):
        logs.get("server").warning("refused a connection")
    assert len(lines(log)) == 500


def test_many_events_take_bounded_memory() -> None:
    limits = LogLimits(Clock())
    limits.lines_max = 1
    for number in range(3 * EVENTS_MAX):
        assert limits.admit(f"event {number}") == 0
    assert len(limits._windows) <= EVENTS_MAX


def test_a_line_of_json_names_its_broker(log: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_identity", None)
    cluster = ""
    logs.get("server").info("starting")
    logs.identify(7, lambda: cluster)
    logs.get("server").info("recovering")
    cluster = "abc"
    logs.get("server").info("ready")
    first, second, third = lines(log)
    assert "node" not in first
    assert (second["node"], "cluster" in second) == (7, False)
    assert (third["node"], third["cluster"], third["event"]) == (7, "abc", "ready")


def test_a_person_reads_lines_without_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_identity", logs._Identity(7, lambda: "abc"))
    stream = StringIO()
    logs.configure(stream=stream)
    logs.get("server").info("ready")
    assert "node" not in stream.getvalue()
    logs.configure()
