"""Finds the first error code of a response, for meters.

Where requests are counted, the code is taken from the response before it is encoded. A response
that has no object here, since the controller made it or the fast path did, is decoded.

Only the first parts of a response are looked at: one that lists ten thousand topics must not hold
up the event loop twice.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeVar

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import WireError
from barnabas.model.ports import Chunk, FileSlice
from barnabas.protocol.apis import response_class
from barnabas.protocol.codec import decoder
from barnabas.protocol.fields import SCALAR_FORMATS, VARIABLE, struct_named
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message

R = TypeVar("R", bound=Message)
E = TypeVar("E", bytes, list[Chunk])
UNKNOWN_ERROR = -2
"""In place of the code of a response that was made elsewhere: it must be decoded."""
LOOKED_AT_MAX = 100
"""How many parts of a response are looked at."""
DECODED_BYTES_MAX = 16 * 1024


class _Parts(NamedTuple):
    """Where the error codes of a message class are."""

    has_code: bool
    fields: tuple[str, ...]
    """Its messages and arrays of messages that have error codes, at any depth."""


def noting(context: RequestContext, encode: Callable[[R], E]) -> Callable[[R], E]:
    """Return a function that encodes a response, and remembers its first error."""

    def encode_and_note(response: R) -> E:
        context.error_code = first_in(response)
        return encode(response)

    return encode_and_note


def first_in(response: Message) -> int:
    """Return the first error code that is not 0, or 0; from the outside to the inside."""
    found = _parts_of(type(response))
    if found.has_code:
        code = response.error_code  # type: ignore[attr-defined]
        if code:
            return int(code)
    return _first_within(response, found.fields) if found.fields else 0


def _first_within(response: Message, fields: tuple[str, ...]) -> int:
    waiting = [getattr(response, name) for name in fields]
    looked_at = 0
    for value in waiting:
        for message in value if isinstance(value, list) else [value]:
            if not isinstance(message, Message):
                continue  # null, or encoded already
            parts = _parts_of(type(message))
            code = message.error_code if parts.has_code else 0  # type: ignore[attr-defined]
            looked_at += 1
            if code or looked_at == LOOKED_AT_MAX:
                return int(code)
            waiting += [getattr(message, name) for name in parts.fields]
    return 0


@cache
def _parts_of(cls: type[Message]) -> _Parts:
    fields = []
    for name, facts in cls.FIELDS.items():
        kind = facts.split(" ", 1)[0].removeprefix("[]")
        if kind in SCALAR_FORMATS or kind in VARIABLE:
            continue
        inner = _parts_of(struct_named(cls, kind))
        if inner.has_code or inner.fields:
            fields.append(name)
    return _Parts("error_code" in cls.FIELDS, tuple(fields))


def first_error(api_key: int, api_version: int, chunks: list[Chunk]) -> int:
    """Return the first error code of an encoded response; 0 for a large one."""
    content = b"".join(chunk for chunk in chunks if not isinstance(chunk, FileSlice))
    if len(content) > DECODED_BYTES_MAX:
        return 0
    head_bytes = len(response_header(api_key, api_version, 0))
    try:
        response, _ = decoder(response_class(api_key), api_version)(content, head_bytes)
    except WireError:
        return 0
    return first_in(response)
