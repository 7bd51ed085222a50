"""Compares our bytes with Apache Kafka's own message classes.

They know every message, version and value. Besides the bytes they return JSON, which is compared
with our attributes one by one, so that swapped fields of one type are detected. One Java process
handles all messages. Its jars come by name through Maven: see `conftest.py`.
"""

import base64
import json
import subprocess
from pathlib import Path
from random import Random

import pytest

from barnabas.protocol.apis import APIS, OTHERS, message_class, request_class, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.coordinator_codec import record_class
from barnabas.protocol.coordinator_records.index_tables import GROUP_RECORDS, TRANSACTION_RECORDS
from barnabas.protocol.fields import Field, fields_at
from barnabas.protocol.message import Message
from tests.support.talk.random_messages import random_message

pytestmark = pytest.mark.compat

HERE = Path(__file__).parent / "java"
HEADERS = {"RequestHeader", "ResponseHeader"}
SEEDS = range(3)

STORED = [
    record_class(facts.module, name)
    for facts in (*GROUP_RECORDS.values(), *TRANSACTION_RECORDS.values())
    for name in (facts.key, facts.value)
]
"""The records that the coordinators write."""

Case = tuple[type[Message], int, Message | None]
"""A class, a version, and the message to send; None requests a new instance."""


def cases() -> list[Case]:
    classes = [find(key) for key in APIS for find in (request_class, response_class)]
    classes += [message_class(module, name) for name, module in OTHERS.items()]
    classes += STORED
    found: list[Case] = []
    for cls in classes:
        low, high = cls.VERSIONS
        for version in range(low, high + 1):
            found += [
                (cls, version, random_message(cls, version, Random(s), own=False)) for s in SEEDS
            ]
            found.append((cls, version, None))
    return found


def question(cls: type[Message], version: int, message: Message | None) -> str:
    name = cls.__name__
    plain = name in OTHERS or cls in STORED
    java = name + "Data" if name in HEADERS or not plain else name
    return f"{java} {version} {'-' if message is None else encoder(cls, version)(message).hex()}"


def test_java_agrees_on_every_message_and_version(jars: str) -> None:
    asked = cases()
    answers = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, str(HERE / "Reencode.java")],
        input="\n".join(question(*case) for case in asked) + "\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )
    assert answers.returncode == 0, answers.stderr
    lines = answers.stdout.split("\n")[: len(asked)]
    for case, line in zip(asked, lines, strict=True):
        compare(*case, line)


def compare(cls: type[Message], version: int, message: Message | None, answer: str) -> None:
    where = f"{cls.__name__} v{version}"
    theirs, _, text = answer.partition(" ")
    assert theirs != "!", f"{where}: {text}"
    sent = cls() if message is None else message
    ours = encoder(cls, version)(sent)
    assert theirs == ours.hex(), where
    compare_struct(sent, version, json.loads(text), where)
    assert decode_exact(cls, version, ours) == sent, where


def compare_struct(message: Message, version: int, node: dict[str, object], where: str) -> None:
    values = {name.lower(): value for name, value in node.items()}
    default = type(message)()
    for field in fields_at(type(message), version):
        held = getattr(message, field.name)
        key = field.name.replace("_", "")
        if key in values:
            compare_value(field, version, held, values.pop(key), f"{where}.{field.name}")
        elif field.kind != "records":
            # Java leaves out fields that the version lacks, and tagged fields with their default.
            assert not field.present or field.tag is not None, f"{where}.{field.name}"
            assert held == getattr(default, field.name), f"{where}.{field.name}"
    assert not values, where


def compare_value(field: Field, version: int, ours: object, theirs: object, where: str) -> None:
    if field.kind == "records":
        return  # Java's JSON leaves them out; the bytes were compared
    if ours is None or theirs is None:
        assert ours is theirs, where
    elif field.array:
        assert isinstance(ours, list)
        assert isinstance(theirs, list)
        for mine, other in zip(ours, theirs, strict=True):
            compare_element(field, version, mine, other, where)
    else:
        compare_element(field, version, ours, theirs, where)


def compare_element(field: Field, version: int, ours: object, theirs: object, where: str) -> None:
    if isinstance(ours, Message):
        assert isinstance(theirs, dict)
        compare_struct(ours, version, theirs, where)
    elif isinstance(ours, bytes):
        assert isinstance(theirs, str)
        plain = base64.urlsafe_b64encode(ours).decode().rstrip("=")
        assert theirs.translate(str.maketrans("+/", "-_")).rstrip("=") == plain, where
    else:
        assert ours == theirs, where
