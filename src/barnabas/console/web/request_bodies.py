"""Reads the JSON bodies of requests, with a limit, and checks their fields."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.requests import Request

from barnabas.console.web.problems import ProblemError, bad_input

BODY_BYTES_MAX = 4 << 20
"""Enough for a record of two megabytes in base64."""


class Body:
    """The fields of a JSON object; each reader raises a sentence that names the field."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field that is text."""
        value = self._fields.get(name, default)
        if not isinstance(value, str):
            raise bad_input(f'"{name}" must be text')
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a field that is text or null."""
        return None if self._fields.get(name) is None else self.text(name)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that is true or false."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise bad_input(f'"{name}" must be true or false')
        return value

    def count(self, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
        """Return a field that is a whole number."""
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise bad_input(f'"{name}" must be a whole number from {least} to {most}')
        return value

    def optional_count(self, name: str, least: int = 0, most: int = 2**31 - 1) -> int | None:
        """Return a field that is a whole number or null."""
        return None if self._fields.get(name) is None else self.count(name, least, most)

    def texts(self, name: str) -> list[str]:
        """Return a field that is a list of texts; an absent one is empty."""
        value = self._fields.get(name) or []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise bad_input(f'"{name}" must be a list of texts')
        return list(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a field that is an object; an absent one is empty."""
        value = self._fields.get(name) or {}
        if not isinstance(value, dict):
            raise bad_input(f'"{name}" must be an object')
        return value

    def items(self, name: str) -> list[Any]:
        """Return a field that is a list; an absent one is empty."""
        value = self._fields.get(name) or []
        if not isinstance(value, list):
            raise bad_input(f'"{name}" must be a list')
        return value

    def part(self, name: str) -> "Body":
        """Return a field that is an object, with its own readers."""
        return Body(self.mapping(name))

    def raw(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a field as it is."""
        return self._fields.get(name)


async def read_body(request: Request) -> Body:
    """Read a request's JSON object; an empty body is an empty object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"The request is larger than {BODY_BYTES_MAX:,} bytes; send less",
            )
        parts.append(chunk)
    if not size:
        return Body({})
    if kind != "application/json":
        raise bad_input("Send JSON with Content-Type: application/json")
    try:
        fields = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise bad_input("The request is not valid JSON") from None
    if not isinstance(fields, dict):
        raise bad_input("The request must be a JSON object")
    return Body(fields)
