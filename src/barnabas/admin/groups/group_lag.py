"""Compute the lag of a consumer group, in records and in seconds.

Lag in records is the distance from the committed offset to the end of the partition. Lag in seconds
is the age of the first record that the group has not read. No API returns the timestamp of an
offset, so the record is fetched; the result is cached while the committed offset does not change.
If retention has removed the record, the age is unknown.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition

from barnabas.admin.connecting import open_consumer
from barnabas.admin.groups.group_admin import Ends, Group, Groups, Member
from barnabas.admin.partition_reading import fetch
from barnabas.admin.scopes import Place
from barnabas.model.ids import NO_GROUP

if TYPE_CHECKING:
    from types import TracebackType

    from confluent_kafka import Consumer, Message

READ_PATIENCE_S = 5.0
FETCH_BYTES = 16_384
"""Enough for a small batch; a broker always sends at least one whole batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """One partition of a group; None for values that are unknown or not committed."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_seconds: float | None
    member_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A group with the lag of each partition."""

    group: Group
    partitions: list[Behind]

    @property
    def lag(self) -> int:
        """The lag in records, over all partitions whose lag is known."""
        return sum(each.lag for each in self.partitions if each.lag is not None)

    @property
    def lag_seconds(self) -> float | None:
        """The age of the oldest unread record; None if it is unknown for all partitions."""
        known = [each.lag_seconds for each in self.partitions if each.lag_seconds is not None]
        return max(known, default=None)

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        group = self.group
        return {
            "group": group.name,
            "type": group.type,
            "state": group.state,
            "assignor": group.assignor or None,
            "coordinator": group.coordinator,
            "members": [member.as_json() for member in group.members],
            "partitions": [asdict(each) for each in self.partitions],
            "lag": self.lag,
            "lag_seconds": self.lag_seconds,
        }


class Lags:
    """Computes the lag of groups repeatedly, over the same connections."""

    def __init__(self, bootstrap: str, properties: list[str] | None) -> None:
        self._groups = Groups(bootstrap, properties)
        self._clock = RecordClock(open_consumer(bootstrap, properties, _settings()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        self._clock.close()

    def report(self, names: list[str]) -> list[Report]:
        """Return the current lag of groups, in the given order."""
        groups = self._groups.describe(names)
        ends = self._groups.ends({place for group in groups for place in _places(group)})
        return [self._report(group, ends) for group in groups]

    def _report(self, group: Group, ends: Mapping[Place, Ends]) -> Report:
        unread = {
            place: offset
            for place, offset in group.committed.items()
            if place in ends and ends[place].earliest <= offset < ends[place].end
        }
        written_ms = self._clock.written_ms(unread)
        now_ms = time.time() * 1000
        owners = group.owners

        def behind(place: Place) -> Behind:
            committed, end = group.committed.get(place), ends.get(place)
            lag = None if committed is None or end is None else max(0, end.end - committed)
            since_ms = now_ms if lag == 0 else written_ms.get(place)
            age_s = None if since_ms is None else max(0.0, (now_ms - since_ms) / 1000)
            return Behind(
                topic=place[0],
                partition=place[1],
                committed=committed,
                end=None if end is None else end.end,
                lag=lag,
                lag_seconds=None if lag is None or age_s is None else round(age_s, 3),
                member_id=_member_id(owners.get(place)),
            )

        return Report(group=group, partitions=[behind(place) for place in _places(group)])


class RecordClock:
    """Reads the timestamps of records at given offsets."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer
        self._known: dict[tuple[Place, int], float] = {}

    def close(self) -> None:
        """Hang up."""
        with closing(self._consumer):
            self._consumer.unassign()

    def written_ms(self, offsets: Mapping[Place, int]) -> dict[Place, float]:
        """Return the timestamp of the first record at or after each offset.

        A partition with only transaction markers counts as written now; one whose record cannot be
        read is omitted.
        """
        asked = set(offsets.items())
        self._known = {key: value for key, value in self._known.items() if key in asked}
        found = {place: value for (place, _), value in self._known.items()}
        new = self._read({place: at for place, at in offsets.items() if place not in found})
        for place, value in new.items():
            if value is not None:
                self._known[place, offsets[place]] = value
        now_ms = time.time() * 1000
        return found | {place: now_ms if at is None else at for place, at in new.items()}

    def _read(self, offsets: dict[Place, int]) -> dict[Place, float | None]:
        """Read one record of each partition; None if there is none up to the end."""
        if not offsets:
            return {}
        found: dict[Place, float | None] = {}
        waiting = set(offsets)
        self._consumer.assign([TopicPartition(*place, at) for place, at in offsets.items()])
        deadline_s = time.monotonic() + READ_PATIENCE_S
        while waiting and time.monotonic() < deadline_s:
            done: set[Place] = set()
            for message in fetch(self._consumer):
                place = (message.topic(), message.partition())
                if place in waiting - done and _is_answer(message):
                    done.add(place)
                    found |= _written(message, place)
            if done:
                waiting -= done
                self._consumer.incremental_unassign([TopicPartition(*place) for place in done])
        self._consumer.unassign()
        return found


def _is_answer(message: "Message") -> bool:
    error = message.error()
    return error is None or not error.retriable()


def _written(message: "Message", place: Place) -> dict[Place, float | None]:
    error = message.error()
    if error is not None:
        return {place: None} if error.code() == KafkaError._PARTITION_EOF else {}
    kind, timestamp_ms = message.timestamp()
    return {} if kind == TIMESTAMP_NOT_AVAILABLE else {place: timestamp_ms}


def _places(group: Group) -> list[Place]:
    return sorted({*group.committed, *group.owners})


def _member_id(member: Member | None) -> str | None:
    return None if member is None else member.member_id


def _settings() -> dict[str, object]:
    return {
        "group.id": NO_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # Records of an open transaction also wait to be read.
        "isolation.level": "read_uncommitted",
        "auto.offset.reset": "error",
        "fetch.message.max.bytes": FETCH_BYTES,
        # Not 1: a partition whose queue is full would block the others.
        "queued.min.messages": 1000,
        "fetch.queue.backoff.ms": 10,
    }
