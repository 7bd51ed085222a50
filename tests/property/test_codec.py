"""Tests every message in every version, filled by Hypothesis: round trips, and damaged bytes."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.model.errors import WireError
from barnabas.protocol.apis import APIS, OTHERS, message_class, request_class, response_class
from barnabas.protocol.codec import decode_exact, decoder, encoder, parts_encoder
from barnabas.protocol.message import Message
from tests.support.examples import examples
from tests.support.talk.random_messages import random_message

CLASSES = [
    *(find(key) for key in APIS for find in (request_class, response_class)),
    *(message_class(module, name) for name, module in OTHERS.items()),
]

# Derandomized: the same examples in every run, so that a failure is the change's own.
few = settings(
    max_examples=4,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
randoms = st.randoms(use_true_random=False)


def versions(cls: type[Message]) -> range:
    low, high = cls.VERSIONS
    return range(low, high + 1)


@every_class
@few
@given(rng=randoms)
def test_messages_round_trip(cls: type[Message], rng: Random) -> None:
    for version in versions(cls):
        message = random_message(cls, version, rng)
        encoded = encoder(cls, version)(message)
        assert decode_exact(cls, version, encoded) == message
        assert decode_exact(cls, version, memoryview(encoded)) == message
        assert decoder(cls, version)(b"head" + encoded + b"tail", 4) == (message, 4 + len(encoded))
        assert b"".join(parts_encoder(cls, version)(message)) == encoded


@every_class
@few
@given(rng=randoms)
def test_truncated_bytes_are_refused(cls: type[Message], rng: Random) -> None:
    for version in versions(cls):
        encoded = encoder(cls, version)(random_message(cls, version, rng))
        decode = decoder(cls, version)
        for _ in range(min(len(encoded), 8)):
            with pytest.raises(WireError):
                decode(encoded[: rng.randrange(len(encoded))], 0)


@every_class
@few
@given(rng=randoms)
def test_broken_bytes_decode_or_are_refused(cls: type[Message], rng: Random) -> None:
    for version in versions(cls):
        encoded = bytearray(encoder(cls, version)(random_message(cls, version, rng)))
        decode = decoder(cls, version)
        for _ in range(4):
            broken = mutated(encoded, rng)
            try:
                message, end = decode(broken, 0)
            except WireError:
                continue
            assert end <= len(broken)
            # What was decoded can be encoded again, with the same meaning.
            again = encoder(cls, version)(message)
            assert encoder(cls, version)(decode_exact(cls, version, again)) == again


def mutated(encoded: bytearray, rng: Random) -> bytearray:
    broken = bytearray(encoded)
    for _ in range(1 + rng.randrange(3)):
        place = rng.randrange(len(broken) + 1)
        match rng.randrange(3):
            case 0:
                broken[place : place + 1] = bytes([rng.choice((0, 1, 127, 128, 255))])
            case 1:
                broken[place:place] = bytes([rng.randrange(256)])
            case _:
                del broken[place : place + 2]
    return broken


@settings(few, max_examples=examples(300))
@given(junk=st.binary(max_size=64), index=st.integers(0, len(CLASSES) - 1))
def test_junk_decodes_or_is_refused(junk: bytes, index: int) -> None:
    for version in versions(CLASSES[index]):
        try:
            _, end = decoder(CLASSES[index], version)(junk, 0)
        except WireError:
            continue
        assert 0 <= end <= len(junk)
