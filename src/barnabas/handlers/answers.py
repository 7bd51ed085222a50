"""Answers that are made of other answers, some of which are not there yet, or in steps."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Generic, TypeVar, cast

from barnabas.effects import Scan
from barnabas.handlers.context import RequestContext
from barnabas.model.pending import Pending
from barnabas.model.steps import Rest, Steps, begin, for_answer
from barnabas.model.timers import Timers
from barnabas.node.node import Node

T = TypeVar("T")
R = TypeVar("R")
LANE = "large answers"


def in_steps(node: Node, steps: Steps[T], context: RequestContext) -> T | Pending[T]:
    """Return what some work gives, at once where that takes no longer than an event may."""
    begun = begin(steps)
    if not isinstance(begun, Rest):
        return begun
    pending: Pending[T] = Pending()
    node.outbox.append(Scan(LANE, context.client, for_answer(begun, pending)))
    return pending


def in_parts(
    node: Node, steps: Steps[Sequence[list[T] | Pending[list[T]]]], context: RequestContext
) -> Pending[list[T]]:
    """Return what is made part by part, all of it in one list, once the last part is there."""
    parts = in_steps(node, steps, context)
    return then(parts, _joined) if isinstance(parts, Pending) else _joined(parts)


def _joined(parts: Sequence[list[T] | Pending[list[T]]]) -> Pending[list[T]]:
    return all_of(parts).map(lambda every: list(chain.from_iterable(every)))


def once(done: Pending[None], answer: T) -> Pending[T]:
    """Return an answer that is to wait for something."""
    return done.map(lambda _: answer)


def all_of(answers: Sequence[T | Pending[T]]) -> Pending[list[T]]:
    """Return all answers, in the same order, once the last is there."""
    return _Collection(answers).pending


def then(first: Pending[T], function: Callable[[T], R | Pending[R]]) -> Pending[R]:
    """Return what a function makes of an answer, once it has made it."""
    answer: Pending[R] = Pending()

    def go_on(result: T) -> None:
        try:
            made = function(result)
        except Exception as error:  # noqa: BLE001 - told to the one whom it concerns
            answer.fail(error)
            return
        if isinstance(made, Pending):
            made.when_done(answer.complete, answer.fail)
        else:
            answer.complete(made)

    first.when_done(go_on, answer.fail)
    return answer


def within(answer: Pending[T], timers: Timers, limit_ms: int, late: Callable[[], T]) -> Pending[T]:
    """Return an answer, or what is said instead where it takes too long."""
    if answer.done:
        return answer
    limited: Pending[T] = Pending()
    timer = timers.after(limit_ms, lambda: limited.complete_with(late))

    def arrived(result: T) -> None:
        timer.cancel()
        limited.complete(result)

    def failed(error: Exception) -> None:
        timer.cancel()
        limited.fail(error)

    answer.when_done(arrived, failed)
    return limited


class _Collection(Generic[T]):
    def __init__(self, answers: Sequence[T | Pending[T]]) -> None:
        self.pending: Pending[list[T]] = Pending()
        self._answers = list(answers)
        self._missing = 1
        for number, answer in enumerate(answers):
            if isinstance(answer, Pending):
                self._missing += 1
                answer.when_done(
                    lambda result, number=number: self._take(number, result),  # type: ignore[misc]
                    self.pending.fail,
                )
        self._count_down()

    def _take(self, number: int, result: T) -> None:
        self._answers[number] = result
        self._count_down()

    def _count_down(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.pending.complete(cast("list[T]", self._answers))
