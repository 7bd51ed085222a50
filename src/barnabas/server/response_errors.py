"""Finds the first error code in an encoded response, for meters."""

from collections import deque
from struct import Struct

from barnabas.model.errors import WireError
from barnabas.model.ports import Chunk, FileSlice
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import response_class
from barnabas.protocol.codec import decoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message

_CODE = Struct(">h")
FETCH_ERROR_FROM = 7
"""The first version of Fetch whose response has an error code of its own."""
THROTTLE_BYTES = 4


def first_error(api_key: int, api_version: int, chunks: list[Chunk]) -> int:
    """Return the first error code that is not 0, or 0.

    Of a Fetch response, which may be large and consist of files, only the response's own error
    code is read, not those of its partitions.
    """
    head_bytes = len(response_header(api_key, api_version, 0))
    if api_key == ApiKey.FETCH:
        if api_version < FETCH_ERROR_FROM:
            return 0
        return _code_at(chunks, head_bytes + THROTTLE_BYTES)
    if api_key == ApiKey.API_VERSIONS:
        # In every version at the same place: an unknown version is answered in version 0.
        return _code_at(chunks, head_bytes)
    content = b"".join(chunk for chunk in chunks if not isinstance(chunk, FileSlice))
    try:
        response, _ = decoder(response_class(api_key), api_version)(content, head_bytes)
    except WireError:
        return 0
    return _first_in(response)


def _code_at(chunks: list[Chunk], position: int) -> int:
    beginning = b""
    for chunk in chunks:
        if isinstance(chunk, FileSlice) or len(beginning) >= position + _CODE.size:
            break
        beginning += chunk[: position + _CODE.size]
    if len(beginning) < position + _CODE.size:
        return 0
    return int(_CODE.unpack_from(beginning, position)[0])


def _first_in(response: Message) -> int:
    """Look through a message and the messages in it, from the outside to the inside."""
    messages = deque([response])
    while messages:
        message = messages.popleft()
        code = getattr(message, "error_code", 0)
        if code:
            return int(code)
        for name in message.__slots__:
            value = getattr(message, name)
            if isinstance(value, Message):
                messages.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Message):
                messages.extend(value)
    return 0
