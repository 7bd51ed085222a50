"""Answers of the HTTP API: JSON that a browser can only take for JSON."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from barnabas.console.web.problems import ProblemError

NO_STORE = {"Cache-Control": "no-store"}


class JsonAnswer(Response):
    """One JSON value, never stored by browsers and proxies."""

    media_type = "application/json"

    def __init__(
        self,
        content: object,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, status, {**NO_STORE, **(headers or {})})

    def render(self, content: object) -> bytes:
        """Return the JSON text."""
        return encode(content)


def encode(content: object) -> bytes:
    """Return a value as compact JSON. Characters with a meaning in HTML are escaped."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text.encode("utf-8", "replace")


_ESCAPES = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


def problem_answer(problem: ProblemError) -> JsonAnswer:
    """Return the answer for a request that failed."""
    content = {"error": problem.message, "code": problem.code}
    return JsonAnswer(content, problem.status, problem.headers)


def number(value: float | None, digits: int = 3) -> float | None:
    """Return a finite, rounded number for JSON; None for an unknown one."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, digits)


def finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without infinities and NaN, which JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
