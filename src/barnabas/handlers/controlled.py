"""Answers that the controller gives: once its records are committed, or with the error it decided on."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending

R = TypeVar("R")


def decided(decide: Callable[[], Pending[R]], refuse: Callable[[ApiError], R]) -> R | Pending[R]:
    """Return what was decided, or how it is refused: now, or when another took over."""
    try:
        pending = decide()
    except ApiError as error:
        return refuse(error)
    return pending.recover(lambda error: refuse(_as_api_error(error)))


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
