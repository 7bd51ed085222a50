"""Tests pending responses that turn out to be errors."""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending

LOST = ApiError(ErrorCode.NOT_COORDINATOR)


def outcome_of(pending: Pending[str]) -> list[object]:
    outcomes: list[object] = []
    pending.when_done(outcomes.append, outcomes.append)
    return outcomes


def test_a_refusal_becomes_an_answer() -> None:
    pending: Pending[str] = Pending()
    outcomes = outcome_of(pending.or_refused(lambda code: code.name))
    pending.fail(LOST)
    assert outcomes == ["NOT_COORDINATOR"]


def test_one_that_was_there_before_does_too() -> None:
    pending: Pending[str] = Pending()
    pending.fail(LOST)
    assert outcome_of(pending.or_refused(lambda code: code.name)) == ["NOT_COORDINATOR"]


def test_an_answer_stays_one() -> None:
    pending: Pending[str] = Pending()
    outcomes = outcome_of(pending.or_refused(lambda code: code.name))
    pending.complete("yes")
    pending.fail(LOST)
    assert outcomes == ["yes"]


def test_a_defect_is_no_refusal() -> None:
    pending: Pending[str] = Pending()
    fault = RuntimeError()
    outcomes = outcome_of(pending.or_refused(lambda code: code.name))
    pending.fail(fault)
    assert outcomes == [fault]


def test_a_refusal_reaches_what_is_made_of_the_answer() -> None:
    pending: Pending[int] = Pending()
    outcomes = outcome_of(pending.map(str).or_refused(lambda code: code.name))
    pending.fail(LOST)
    assert outcomes == ["NOT_COORDINATOR"]


def test_none_is_an_answer_like_any_other() -> None:
    early: Pending[None] = Pending.of(None)
    outcomes: list[object] = []
    early.when_done(outcomes.append)
    assert outcomes == [None]
    assert Pending.of(None).map(lambda _: "made of it").done


def test_one_that_was_abandoned_has_no_answer() -> None:
    pending: Pending[str] = Pending()
    pending.abandon()
    assert outcome_of(pending) == []
