"""Encoders and decoders for every message class and version.

A codec is compiled on first use: `decoding.py` and `encoding.py` write Python source from the wire
facts of the class, and the compiled function is cached. A handler looks up its codec once for each
request, which is one dictionary access.

    decode = decoder(MetadataRequest, 12)
    request, position = decode(frame, header.body)
    answer = encoder(MetadataResponse, 12)(response)

Decoding raises `WireError`, and nothing else, for bytes that are not the message. Encoding
raises `ValueError`, naming the field, for a message that the version cannot carry.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.decoding import decoder_source
from barnabas.protocol.encoding import encoder_source
from barnabas.protocol.message import Message

M = TypeVar("M", bound=Message)

Decoder = Callable[[Buffer, int], tuple[M, int]]
"""Takes a buffer and a position; returns the message and the position after it."""

Encoder = Callable[[M], bytes]
PartsEncoder = Callable[[M], list[Buffer]]

_decoders: dict[tuple[type[Message], int], Any] = {}
_encoders: dict[tuple[type[Message], int], Any] = {}
_parts_encoders: dict[tuple[type[Message], int], Any] = {}


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """Return the decoder of a message in a version."""
    decode = _decoders.get((cls, version))
    if decode is None:
        _check(cls, version)
        title = f"decode {cls.__name__} v{version}"
        decode = decoder_source(cls, version).compile("decode", title)
        _decoders[cls, version] = decode
    return cast("Decoder[M]", decode)


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """Return the encoder of a message in a version."""
    encode = _encoders.get((cls, version))
    if encode is None:
        _check(cls, version)
        title = f"encode {cls.__name__} v{version}"
        encode = encoder_source(cls, version).compile("encode", title)
        _encoders[cls, version] = encode
    return cast("Encoder[M]", encode)


def parts_encoder(cls: type[M], version: int) -> PartsEncoder[M]:
    """Return an encoder that does not copy records but returns them as separate buffers."""
    encode = _parts_encoders.get((cls, version))
    if encode is None:
        _check(cls, version)
        title = f"encode parts of {cls.__name__} v{version}"
        encode = encoder_source(cls, version, parts=True).compile("encode", title)
        _parts_encoders[cls, version] = encode
    return cast("PartsEncoder[M]", encode)


def decode_exact(
    cls: type[M], version: int, buffer: Buffer, position: int = 0, *, trailing: bool = False
) -> M:
    """Decode a message that ends where the buffer ends, unless trailing bytes are allowed."""
    message, end = decoder(cls, version)(buffer, position)
    if end != len(buffer) and not trailing:
        raise WireError(f"{len(buffer) - end} bytes follow {cls.__name__} v{version}")
    return message


def _check(cls: type[Message], version: int) -> None:
    low, high = cls.VERSIONS
    if not low <= version <= high:
        raise ValueError(f"{cls.__name__} has versions {low} to {high}, not {version}")
