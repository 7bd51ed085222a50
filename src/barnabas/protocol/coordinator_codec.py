"""Encodes and decodes the records of coordinators as Kafka does.

They lie in `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

A key begins with the number of its record type, a value with its version; both are int16. Types
that this version does not know belong to a later one and are skipped.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from struct import Struct
from typing import NamedTuple, cast

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import CorruptBatchError, WireError
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.coordinator_records.index_tables import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
)
from barnabas.protocol.message import Message, RecordFacts

PACKAGE = "barnabas.protocol.coordinator_records"

_NUMBER = Struct(">h")

_kinds: dict[type[Message], int] = {}


class Stored(NamedTuple):
    """A decoded record: its key, and its value or None for a tombstone."""

    key: Message
    value: Message | None


def encode(key: Message, value: Message | None, version: int | None = None) -> CoordinatorRecord:
    """Return what is stored for a key and a value, which is None for a tombstone."""
    return CoordinatorRecord(_encode_key(key), _encode_value(value, version))


def decode(tables: Mapping[int, RecordFacts], record: CoordinatorRecord) -> Stored | None:
    """Read a record; None if its type is unknown. Raises `CorruptBatchError` if it is invalid."""
    if len(record.key) < _NUMBER.size:
        raise CorruptBatchError("a coordinator record has no type")
    facts = tables.get(_NUMBER.unpack_from(record.key)[0])
    if facts is None:
        return None
    try:
        key = decode_exact(record_class(facts.module, facts.key), 0, record.key, _NUMBER.size)
        if record.value is None:
            return Stored(key, None)
        return Stored(key, _decode_value(record_class(facts.module, facts.value), record.value))
    except WireError as error:
        raise CorruptBatchError(f"a coordinator record cannot be decoded: {error}") from error


def decode_group_record(record: CoordinatorRecord) -> Stored | None:
    """Read a record of `__consumer_offsets`."""
    return decode(GROUP_RECORDS, record)


def decode_transaction_record(record: CoordinatorRecord) -> Stored | None:
    """Read a record of `__transaction_state`."""
    return decode(TRANSACTION_RECORDS, record)


def decode_share_record(record: CoordinatorRecord) -> Stored | None:
    """Read a record of `__share_group_state`."""
    return decode(SHARE_RECORDS, record)


@cache
def record_class(module: str, name: str) -> type[Message]:
    """Return a class by its module and name."""
    return cast("type[Message]", getattr(import_module(f"{PACKAGE}.{module}"), name))


def _encode_key(key: Message) -> bytes:
    return _NUMBER.pack(_kind_of(type(key))) + encoder(type(key), 0)(key)


def _encode_value(value: Message | None, version: int | None) -> bytes | None:
    if value is None:
        return None
    chosen = type(value).VERSIONS[1] if version is None else version
    return _NUMBER.pack(chosen) + encoder(type(value), chosen)(value)


def _decode_value(cls: type[Message], content: bytes) -> Message:
    if len(content) < _NUMBER.size:
        raise CorruptBatchError(f"{cls.__name__} has no version")
    (version,) = _NUMBER.unpack_from(content)
    low, high = cls.VERSIONS
    if not low <= version <= high:
        raise CorruptBatchError(f"{cls.__name__} has version {version}, which is unknown")
    return decode_exact(cls, version, content, _NUMBER.size)


def _kind_of(cls: type[Message]) -> int:
    if not _kinds:
        for tables in (GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_RECORDS):
            for number, facts in tables.items():
                _kinds[record_class(facts.module, facts.key)] = number
    return _kinds[cls]
