"""Responses of the controller: sent once its records are committed, or as a refusal."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending

R = TypeVar("R")


def decided(decide: Callable[[], Pending[R]], refuse: Callable[[ApiError], R]) -> R | Pending[R]:
    """Return a decision, or a refusal: at once, or when another controller takes over."""
    try:
        pending = decide()
    except ApiError as error:
        return refuse(error)
    return pending.or_refused(lambda code: refuse(ApiError(code)))
