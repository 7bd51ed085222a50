"""Answers to come that turn out to be refusals."""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending

LOST = ApiError(ErrorCode.NOT_COORDINATOR)


def told(pending: Pending[str]) -> list[object]:
    heard: list[object] = []
    pending.when_done(heard.append, heard.append)
    return heard


def test_a_refusal_becomes_an_answer() -> None:
    pending: Pending[str] = Pending()
    heard = told(pending.or_refused(lambda code: code.name))
    pending.fail(LOST)
    assert heard == ["NOT_COORDINATOR"]


def test_one_that_was_there_before_does_too() -> None:
    pending: Pending[str] = Pending()
    pending.fail(LOST)
    assert told(pending.or_refused(lambda code: code.name)) == ["NOT_COORDINATOR"]


def test_an_answer_stays_one() -> None:
    pending: Pending[str] = Pending()
    heard = told(pending.or_refused(lambda code: code.name))
    pending.complete("yes")
    pending.fail(LOST)
    assert heard == ["yes"]


def test_a_fault_of_ours_is_no_refusal() -> None:
    pending: Pending[str] = Pending()
    fault = RuntimeError()
    heard = told(pending.or_refused(lambda code: code.name))
    pending.fail(fault)
    assert heard == [fault]


def test_a_refusal_reaches_what_is_made_of_the_answer() -> None:
    pending: Pending[int] = Pending()
    heard = told(pending.map(str).or_refused(lambda code: code.name))
    pending.fail(LOST)
    assert heard == ["NOT_COORDINATOR"]


def test_none_is_an_answer_like_any_other() -> None:
    early: Pending[None] = Pending.of(None)
    heard: list[object] = []
    early.when_done(heard.append)
    assert heard == [None]
    assert Pending.of(None).map(lambda _: "made of it").done


def test_one_that_was_abandoned_has_no_answer() -> None:
    pending: Pending[str] = Pending()
    pending.abandon()
    assert told(pending) == []
