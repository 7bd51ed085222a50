"""Fills messages with random values, for tests of the codec.

All choices come from the `Random` that is passed in, so a seed replays a message, and Hypothesis
can shrink one through `strategies.randoms(use_true_random=False)`. Only fields that the version has
are filled; the others keep their defaults.
"""

from random import Random

from barnabas.protocol.fields import Field, fields_at
from barnabas.protocol.message import Message

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ALPHABET = "abcxyz-_.09 äß漢🙂\x00"
OWN_TAGS_FROM = 10_000
"""Tagged fields from here on are our own: Kafka's classes do not know them."""
LENGTHS = (0, 1, 1, 2, 3, 5, 20)
LONG_LENGTHS = (126, 127, 128, 300)
"""Values around the limit of a varint's first byte."""


def is_own(field: Field) -> bool:
    """Return whether a field is not Kafka's."""
    return field.tag is not None and field.tag >= OWN_TAGS_FROM


def random_message(
    cls: type[Message], version: int, rng: Random, *, small: bool = False, own: bool = True
) -> Message:
    """Return a message that the version can encode, with or without fields of our own.

    Small integers suit readers that convert error codes and times.
    """
    message = cls()
    for field in fields_at(cls, version):
        # Tagged fields at their default take another path through the codec.
        if is_own(field) and not own:
            continue
        if field.present and (field.tag is None or rng.randrange(2)):
            setattr(message, field.name, _value(field, version, rng, small=small, own=own))
    return message


def _value(field: Field, version: int, rng: Random, *, small: bool, own: bool) -> object:
    if field.nullable and rng.randrange(4) == 0:
        return None
    if not field.array:
        return _element(field, version, rng, small=small, own=own)
    scalar = field.struct is None
    count = rng.choice(LONG_LENGTHS) if scalar and rng.randrange(20) == 0 else rng.randrange(4)
    return [_element(field, version, rng, small=small, own=own) for _ in range(count)]


def _element(field: Field, version: int, rng: Random, *, small: bool, own: bool) -> object:
    if field.struct is not None:
        return random_message(field.struct, version, rng, small=small, own=own)
    if field.kind == "string":
        return "".join(rng.choices(ALPHABET, k=_length(rng)))
    if field.kind in {"bytes", "records"}:
        return rng.getrandbits(8 * 300).to_bytes(300, "big")[: _length(rng)]
    return rng.randrange(4) if small and field.kind in INTEGER_BITS else _fixed(field.kind, rng)


def _fixed(kind: str, rng: Random) -> object:
    match kind:
        case "bool":
            return rng.randrange(2) == 1
        case "float64":
            return rng.randrange(-1000, 1000) / 8
        case "uuid":
            return rng.getrandbits(128).to_bytes(16, "big")
        case "uint16" | "uint32":
            return rng.getrandbits(16)
        case _:
            half = 1 << (INTEGER_BITS[kind] - 1)
            return rng.choice((0, 1, -1, half - 1, -half, rng.randrange(-half, half)))


def _length(rng: Random) -> int:
    return rng.choice(LONG_LENGTHS if rng.randrange(20) == 0 else LENGTHS)
