"""Answers that the controller gives: once its records are committed, or as it refuses."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending

R = TypeVar("R")


def decided(decide: Callable[[], Pending[R]], refuse: Callable[[ApiError], R]) -> R | Pending[R]:
    """Return what was decided, or how it is refused: now, or when another took over."""
    try:
        pending = decide()
    except ApiError as error:
        return refuse(error)
    return pending.or_refused(lambda code: refuse(ApiError(code)))
