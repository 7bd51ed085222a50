"""Tests responses that must not take too long."""

from barnabas.handlers.answers import within
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers


def limited(pending: Pending[str]) -> tuple[Timers, list[object]]:
    timers, heard = Timers(), list[object]()
    within(pending, timers, 10, lambda: "late").when_done(heard.append, heard.append)
    return timers, heard


def test_in_time() -> None:
    pending: Pending[str] = Pending()
    timers, heard = limited(pending)
    timers.now_ms = 9
    timers.fire()
    assert heard == []
    pending.complete("here")
    assert (heard, timers.next_ms) == (["here"], None)


def test_late() -> None:
    pending: Pending[str] = Pending()
    timers, heard = limited(pending)
    timers.now_ms = 10
    timers.fire()
    pending.complete("here")
    assert heard == ["late"]


def test_a_failure_is_passed_on() -> None:
    pending: Pending[str] = Pending()
    timers, heard = limited(pending)
    fault = RuntimeError()
    pending.fail(fault)
    assert (heard, timers.next_ms) == ([fault], None)


def test_what_is_there_needs_no_clock() -> None:
    pending: Pending[str] = Pending()
    pending.complete("here")
    timers, heard = limited(pending)
    assert (heard, timers.next_ms) == (["here"], None)
