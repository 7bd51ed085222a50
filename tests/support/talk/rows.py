"""Rows of the registry with handlers of a test."""

from collections.abc import Callable
from copy import copy
from operator import attrgetter
from typing import Any

from barnabas.handlers.rows.row import Api, Row
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import request_class, response_class

Handle = Callable[[Any, Any, Any], Any]

handler_of: Callable[[Row], Handle] = attrgetter("handle")
"""Returns the handler of a row, whatever its type."""


def with_handler(row: Row, handle: Handle) -> Row:
    """Return the same row with another handler."""
    other = copy(row)
    object.__setattr__(other, "handle", handle)  # rows are frozen
    return other


def row_of(api_key: int, low: int, high: int, handle: Handle) -> Row:
    """Return a row for any API, served or not."""
    request, response = request_class(api_key), response_class(api_key)
    return Api(ApiKey(api_key), low, high, request, response, handle, needs=())
