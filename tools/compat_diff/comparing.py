"""Compares two responses field by field.

Fields that differ between two runs of the same broker are not compared: ports, sizes, current
times, texts of errors. Ids that a broker chooses are paired: the first time that two ids meet they
become a pair, and from then on each must meet the other. Arrays without an order are matched by the
fields that identify their entries.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.fields import Field, fields_at
from barnabas.protocol.message import Message
from barnabas.protocol.records import HEADER_BYTES, batches, records

DAY_MS = 86_400_000
ABSENT = "(absent)"
UNKNOWN_ID = bytes(range(16))
"""The id of a missing topic: dialogues send it to both brokers."""

IGNORED = {
    "throttle_time_ms",
    "host",
    "port",
    "client_host",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "partition_size",
    "documentation",
    "finalized_features_epoch",
}
"""Fields that depend on the machine, the time or the load."""

IGNORED_OF = {
    ("ReplicaState", "log_end_offset"),
    ("ReplicaState", "last_fetch_timestamp"),
    ("ReplicaState", "last_caught_up_timestamp"),
    ("DescribeQuorumResponsePartitionData", "high_watermark"),
    ("DescribeQuorumResponsePartitionData", "leader_epoch"),
    ("Listener", "name"),
}
"""The same, for names that another class uses for a field that counts."""

GROUP_EPOCHS = ("member_epoch", "group_epoch", "assignment_epoch")
"""Epochs of the consumer protocol: a client sends back the value it got."""

PAIRED = {
    "topic_id",
    "producer_id",
    "member_id",
    "leader",
    "session_id",
    "cluster_id",
    "replica_directory_id",
    *GROUP_EPOCHS,
}
"""Ids that the broker chooses."""

TEXTS = {"error_message", "batch_index_error_message"}
TIMES = {"timestamp", "log_append_time_ms", "last_timestamp", "transaction_start_time_ms"}
ORDERED = {"replica_nodes", "replicas", "mechanisms"}
ERRORS = {"error_code", "partition_error_code"}

IDENTIFYING = (
    "topic_id",
    "name",
    "topic",
    "topic_name",
    "group_id",
    "key",
    "transactional_id",
    "resource_type",
    "resource_name",
    "partition_index",
    "partition",
    "partition_id",
    "index",
    "api_key",
    "broker_id",
    "node_id",
    "producer_id",
    "group_instance_id",
    "instance_id",
    "member_id",
    "first_offset",
    "batch_index",
)
FOREIGN = re.compile(r"cd\d+\.\d+-")
"""The prefix of the names of all dialogues; responses that list everything include those of others.
"""


class Found(NamedTuple):
    """One field whose values differ."""

    path: str
    kafka: object
    barnabas: object


@dataclass
class Pairs:
    """The paired ids of one dialogue."""

    prefix: str = ""
    to_barnabas: dict[object, object] = field(default_factory=dict)
    to_kafka: dict[object, object] = field(default_factory=dict)

    def match(self, kafka: object, barnabas: object) -> bool:
        """Return whether two ids are the same; ids that are both new become a pair."""
        if is_no_id(kafka) or is_no_id(barnabas):
            return kafka == barnabas
        if kafka not in self.to_barnabas and barnabas not in self.to_kafka:
            self.to_barnabas[kafka], self.to_kafka[barnabas] = barnabas, kafka
        return self.to_barnabas.get(kafka) == barnabas

    def is_foreign(self, entry: Message) -> bool:
        """Return whether an entry of a list belongs to another dialogue."""
        for name in ("name", "topic", "group_id", "transactional_id", "resource_name"):
            value = getattr(entry, name, None)
            if isinstance(value, str) and value:
                return bool(FOREIGN.match(value)) and not value.startswith(self.prefix)
        return False


def is_no_id(value: object) -> bool:
    """Return whether a value stands for no id; the warm-up has taken producer id 0."""
    fixed = (None, "", bytes(16), UNKNOWN_ID)
    return value in fixed or (isinstance(value, int) and value <= 0)


def compare(kafka: Message, barnabas: Message, version: int, pairs: Pairs) -> list[Found]:
    """Return every difference between two responses to the same request."""
    return list(_structs(kafka, barnabas, version, pairs, ""))


def _structs(
    kafka: Message, barnabas: Message, version: int, pairs: Pairs, path: str
) -> Iterator[Found]:
    """Compare two messages; if the error differs, no other difference is reported."""
    found: list[Found] = []
    for described in fields_at(type(kafka), version):
        name = described.name
        skipped = name in IGNORED or (type(kafka).__name__, name) in IGNORED_OF
        if not described.present or skipped:
            continue
        ours, theirs = getattr(barnabas, name), getattr(kafka, name)
        below = f"{path}.{name}" if path else name
        differing = list(_values(described, theirs, ours, version, pairs, below))
        if differing and name in ERRORS:
            yield from differing
            return
        found += differing
    yield from found


def _values(
    described: Field,
    kafka: Any,  # noqa: ANN401 - as in Field
    barnabas: Any,  # noqa: ANN401 - as in Field
    version: int,
    pairs: Pairs,
    path: str,
) -> Iterator[Found]:
    if described.name in TEXTS:
        return
    if kafka is None or barnabas is None:
        if kafka is not barnabas:
            yield Found(path, _short(kafka), _short(barnabas))
    elif described.kind == "records":
        yield from _batches(bytes(kafka), bytes(barnabas), pairs, path)
    elif described.array:
        yield from _arrays(described, kafka, barnabas, version, pairs, path)
    elif isinstance(kafka, Message):
        yield from _structs(kafka, barnabas, version, pairs, path)
    elif not same(described.name, kafka, barnabas, pairs):
        yield Found(path, kafka, barnabas)


def same(name: str, kafka: object, barnabas: object, pairs: Pairs) -> bool:
    """Return whether two values of a field mean the same."""
    if name in PAIRED:
        return pairs.match(kafka, barnabas)
    if name in TIMES and is_now(kafka) and is_now(barnabas):
        return True
    return kafka == barnabas


def is_now(value: object) -> bool:
    """Return whether a time lies within a day of now."""
    return isinstance(value, int) and abs(time.time() * 1000 - value) < DAY_MS


def _arrays(
    described: Field,
    kafka: Sequence[Any],
    barnabas: Sequence[Any],
    version: int,
    pairs: Pairs,
    path: str,
) -> Iterator[Found]:
    if described.struct is None:
        ordered = described.name in ORDERED
        theirs = list(kafka) if ordered else sorted(kafka)
        ours = list(barnabas) if ordered else sorted(barnabas)
        if theirs != ours:
            yield Found(path, theirs, ours)
        return
    theirs = [entry for entry in kafka if not pairs.is_foreign(entry)]
    ours = [entry for entry in barnabas if not pairs.is_foreign(entry)]
    matched, only_kafka, only_barnabas = align(merged(theirs), merged(ours), pairs)
    for one, other in matched:
        yield from _structs(one, other, version, pairs, f"{path}[]")
    for entry in only_kafka:
        yield Found(f"{path}[+]", _short(entry), ABSENT)
    for entry in only_barnabas:
        yield Found(f"{path}[+]", ABSENT, _short(entry))


def merged(entries: Sequence[Message]) -> list[Message]:
    """Merge the partitions of a topic that a fetch response has in several places."""
    found: dict[object, Message] = {}
    for entry in entries:
        if type(entry).__name__ != "FetchableTopicResponse":
            return list(entries)
        named = identity(entry, {})
        if named in found:
            found[named].partitions.extend(entry.partitions)  # type: ignore[attr-defined]
        else:
            found[named] = entry
    return list(found.values())


def align(
    kafka: Sequence[Message], barnabas: Sequence[Message], pairs: Pairs
) -> tuple[list[tuple[Message, Message]], list[Message], list[Message]]:
    """Match the entries of two arrays; unmatched entries of both sides are matched in order."""
    waiting: dict[tuple[object, ...], list[Message]] = {}
    for entry in barnabas:
        waiting.setdefault(identity(entry, {}), []).append(entry)
    matched, alone = [], []
    for entry in kafka:
        candidates = waiting.get(identity(entry, pairs.to_barnabas))
        if candidates:
            matched.append((entry, candidates.pop(0)))
        else:
            alone.append(entry)
    rest = [entry for entries in waiting.values() for entry in entries]
    still_alone = []
    for entry in alone:
        named = identity(entry, {}, leave_out=PAIRED)
        alike = [other for other in rest if identity(other, {}, leave_out=PAIRED) == named]
        if alike:
            matched.append((entry, alike[0]))
            rest = [other for other in rest if other is not alike[0]]
        else:
            still_alone.append(entry)
    return matched, still_alone, rest


def identity(
    entry: Message, renamed: dict[object, object], leave_out: set[str] | None = None
) -> tuple[object, ...]:
    """Return what distinguishes an entry from its neighbours, in Barnabas's ids."""
    values = [
        (name, getattr(entry, name))
        for name in IDENTIFYING
        if name in entry.__slots__
        and name not in (leave_out or ())
        and (type(entry).__name__, name) not in IGNORED_OF
    ]
    return tuple(renamed.get(value, value) if name in PAIRED else value for name, value in values)


def _batches(kafka: bytes, barnabas: bytes, pairs: Pairs, path: str) -> Iterator[Found]:
    theirs, ours = read_batches(kafka), read_batches(barnabas)
    if len(theirs) != len(ours):
        yield Found(f"{path}.batches", len(theirs), len(ours))
        return
    for one, other in zip(theirs, ours, strict=True):
        for name in one:
            if not same(name, one[name], other[name], pairs):
                yield Found(f"{path}[].{name}", one[name], other[name])


def read_batches(content: bytes) -> list[dict[str, Any]]:
    """Return complete batches as the fields that count; an incomplete batch is left out."""
    found = []
    for header, view in batches(content):
        if len(view) < HEADER_BYTES:
            break
        try:
            inside: object = [entry[2:] for entry in records(bytes(view), header)]
        except (CorruptBatchError, ValueError) as error:
            inside = f"unreadable: {error}"
        now = is_now(header.max_timestamp)
        found.append(
            {
                "base_offset": header.base_offset,
                "leader_epoch": header.leader_epoch,
                "attributes": header.attributes,
                "last_offset_delta": header.last_offset_delta,
                "base_timestamp": "now" if is_now(header.base_timestamp) else header.base_timestamp,
                "max_timestamp": "now" if now else header.max_timestamp,
                "producer_id": header.producer_id,
                "producer_epoch": header.producer_epoch,
                "base_sequence": header.base_sequence,
                "record_count": header.record_count,
                "records": inside,
            }
        )
    return found


def _short(value: object) -> object:
    """Keep only what identifies an entry; the rest would fill the report."""
    if isinstance(value, Message):
        named = [
            name
            for name in (*IDENTIFYING, *ERRORS)
            if name in value.__slots__ and getattr(value, name) not in (None, "", bytes(16))
        ]
        return ", ".join(f"{name}={getattr(value, name)!r}" for name in named) or "an entry"
    if isinstance(value, list):
        return f"{len(value)} entries"
    return value
