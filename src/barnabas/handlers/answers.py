"""Combines pending responses: several at once, one after another, in steps, with a time limit."""

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
    """Return the result of some work: at once if it fits into one event, otherwise pending."""
    begun = begin(steps)
    if not isinstance(begun, Rest):
        return begun
    pending: Pending[T] = Pending()
    node.outbox.append(Scan(LANE, context.client, for_answer(begun, pending)))
    return pending


def in_parts(
    node: Node, steps: Steps[Sequence[list[T] | Pending[list[T]]]], context: RequestContext
) -> Pending[list[T]]:
    """Return the items of all parts in one list, once the last part is complete."""
    parts = in_steps(node, steps, context)
    return then(parts, _joined) if isinstance(parts, Pending) else _joined(parts)


def _joined(parts: Sequence[list[T] | Pending[list[T]]]) -> Pending[list[T]]:
    return all_of(parts).map(lambda every: list(chain.from_iterable(every)))


def once(done: Pending[None], answer: T) -> Pending[T]:
    """Return a response that waits for something else to complete."""
    return done.map(lambda _: answer)


def all_of(answers: Sequence[T | Pending[T]]) -> Pending[list[T]]:
    """Return all responses, in the same order, once the last is complete."""
    return _Collection(answers).pending


def then(first: Pending[T], function: Callable[[T], R | Pending[R]]) -> Pending[R]:
    """Return the result of a function of a response, which may be pending itself."""
    answer: Pending[R] = Pending()

    def go_on(result: T) -> None:
        try:
            made = function(result)
        except Exception as error:  # noqa: BLE001 - reported to the caller that waits
            answer.fail(error)
            return
        if isinstance(made, Pending):
            made.when_done(answer.complete, answer.fail)
        else:
            answer.complete(made)

    first.when_done(go_on, answer.fail)
    return answer


def within(answer: Pending[T], timers: Timers, limit_ms: int, late: Callable[[], T]) -> Pending[T]:
    """Return a response, or a substitute if it takes too long."""
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
