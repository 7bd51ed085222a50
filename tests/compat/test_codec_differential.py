"""Compares our bytes with the codecs of kio and kafka-python.

kio and kafka-python lack some messages and versions, and kio refuses values that it has no type
for, so both get small integers. Apache Kafka's own classes cover the versions that they lack: see
`test_codec_java.py`.
"""

from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from random import Random
from typing import Any

import pytest

from barnabas.protocol.apis import APIS, request_class, response_class
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from tests.support.talk.random_messages import random_message

pytestmark = pytest.mark.compat

SEEDS = range(3)
KAFKA_PYTHON_PACKAGES = ("admin", "consumer", "metadata", "producer", "sasl")
every_api = pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)


def classes(key: int) -> Iterator[tuple[type[Message], range]]:
    for cls in (request_class(key), response_class(key)):
        low, high = cls.VERSIONS
        yield cls, range(low, high + 1)


def encoded(cls: type[Message], version: int, seed: int) -> bytes:
    message = random_message(cls, version, Random(seed), small=True, own=False)
    if isinstance(message, ApiVersionsResponse):
        # Clients read an error response as v0, whatever version they requested (KIP-511).
        message.error_code = 0
    return encoder(cls, version)(message)


def kio_class(cls: type[Message], key: int, version: int) -> Any:
    index = import_module("kio.index")
    load = index.load_request_schema if "Request" in cls.__name__ else index.load_response_schema
    try:
        return load(key, version)
    except (index.UnknownAPIKey, index.UnknownEntity):
        return None


@every_api
def test_kio_agrees(key: int) -> None:
    serial = pytest.importorskip("kio.serial")
    compared = 0
    for cls, versions in classes(key):
        for version in versions:
            theirs = kio_class(cls, key, version)
            if theirs is None:
                continue
            for seed in SEEDS:
                ours = encoded(cls, version, seed)
                message, size = serial.entity_reader(theirs)(ours, 0)
                again = BytesIO()
                serial.entity_writer(theirs)(again, message)
                assert (size, again.getvalue()) == (len(ours), ours), f"{cls.__name__} v{version}"
                compared += 1
    if not compared:
        pytest.skip("kio does not know this API")


def kafka_python_class(name: str) -> Any:
    for package in KAFKA_PYTHON_PACKAGES:
        found = getattr(import_module(f"kafka.protocol.{package}"), name, None)
        if found is not None:
            return found
    return None


@every_api
def test_kafka_python_agrees(key: int) -> None:
    pytest.importorskip("kafka")
    compared = 0
    for cls, versions in classes(key):
        theirs = kafka_python_class(cls.__name__)
        if theirs is None:
            continue
        for version in versions:
            if version > theirs.max_version:
                continue
            for seed in SEEDS:
                ours = encoded(cls, version, seed)
                message = theirs.decode(ours, version=version)
                message._header = None  # its decoder leaves this unset, its encoder needs it
                assert bytes(message.encode(version=version)) == ours, f"{cls.__name__} v{version}"
                compared += 1
    if not compared:
        pytest.skip("kafka-python does not know this API")
