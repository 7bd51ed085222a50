"""Parses the options of a read into settings.

The names and meanings are those of Spark's own Kafka connector. Spark passes names in any case, so
they are compared in lower case. Unknown names and invalid values are refused with advice. Options
of writes are ignored, so that one dict serves both.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from barnabas.model.durations import parse_duration_ms
from barnabas.model.ids import TopicPartition
from barnabas.spark.client_properties import (
    client_properties,
    is_direct,
    is_read_committed,
    whole_number,
)
from barnabas.spark.query_errors import OptionError
from barnabas.spark.settings.option_names import (
    PREFIX,
    READ_NAMES,
    WRITE_NAMES,
    nearest,
    unknown_names,
)
from barnabas.spark.source.offset_json import EARLIEST, LATEST, parse_offsets, parse_partitions

SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
GROUP_PREFIX = "barnabas-spark"

T = TypeVar("T")


@dataclass(frozen=True)
class Assign:
    """Exactly these partitions."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True)
class Subscribe:
    """All partitions of these topics, now and later."""

    topics: frozenset[str]


@dataclass(frozen=True)
class SubscribePattern:
    """All partitions of the topics whose whole name matches, now and later."""

    pattern: str


Subscription: TypeAlias = Assign | Subscribe | SubscribePattern


@dataclass(frozen=True)
class Edge:
    """The earliest or the latest offset of every partition."""

    offset: int


@dataclass(frozen=True)
class AtOffsets:
    """An offset for each partition; -1 is the latest, -2 the earliest."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class AtTimes:
    """The first record from a time on, for each partition or for all."""

    option: str
    times_ms: Mapping[TopicPartition, int] | int


Limit: TypeAlias = Edge | AtOffsets | AtTimes


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """The settings of a read."""

    client: Mapping[str, str]
    """librdkafka's properties."""
    subscription: Subscription
    starting: Limit
    ending: Limit = field(default_factory=lambda: Edge(LATEST))
    """The end of a batch read; a stream has no end."""
    none_from_time_is_latest: bool = False
    """The start if no record is as young as the given time: the latest offset, or an error."""
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    """After this time a batch is made even if it is small."""
    min_partitions: int | None = None
    max_partitions: int | None = None
    max_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    include_fetch_time: bool = False
    """Whether there is a column with the time that the source took, for metrics."""
    group_id: str = GROUP_PREFIX
    """The group whose offsets show the progress of a stream."""
    patience_ms: int = 120_000
    """How long a task retries to get the next records, while brokers restart or leaders move."""
    lookup_retries: int = 3
    lookup_pause_ms: int = 1000

    @property
    def is_direct(self) -> bool:
        """Whether our own connections can be used; otherwise librdkafka's are."""
        return is_direct(self.client)

    @property
    def is_read_committed(self) -> bool:
        """Whether open and aborted transactions stay hidden."""
        return is_read_committed(self.client)


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether there is a column of headers."""
    return _Options(options).truth("includeHeaders", default=False)


def includes_fetch_time(options: Mapping[str, str]) -> bool:
    """Return whether there is a column with the time that the source took."""
    return _Options(options).truth("includeFetchTime", default=False)


def parse_batch(options: Mapping[str, str]) -> ReadSettings:
    """Parse the options of spark.read."""
    known = _Options(options)
    starting = _starting(known, Edge(EARLIEST))
    ending = _ending(known)
    if starting == Edge(LATEST) or _has(starting, LATEST):
        raise OptionError(
            "startingOffsets cannot be latest (-1) in a batch, which would read nothing; "
            "name earliest (-2), offsets or startingTimestamp"
        )
    if ending == Edge(EARLIEST) or _has(ending, EARLIEST):
        raise OptionError(
            "endingOffsets cannot be earliest (-2), which would read nothing; "
            "name latest (-1), offsets or endingTimestamp"
        )
    return _settings(known, starting, ending)


def parse_stream(options: Mapping[str, str]) -> ReadSettings:
    """Parse the options of spark.readStream."""
    known = _Options(options)
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if known.text(name) is not None:
            raise OptionError(f"{name} is for spark.read; a stream has no end: leave it out")
    return _settings(known, _starting(known, Edge(LATEST)), Edge(LATEST))


def _settings(known: "_Options", starting: Limit, ending: Limit) -> ReadSettings:
    client = client_properties(known.values)
    is_read_committed(client)
    subscription = _subscription(known)
    most, least = known.count("maxOffsetsPerTrigger"), known.count("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"minOffsetsPerTrigger ({least}) is more than maxOffsetsPerTrigger ({most}); "
            "lower the one or raise the other"
        )
    _check_tasks(known)
    return ReadSettings(
        client=client,
        subscription=subscription,
        starting=starting,
        ending=ending,
        none_from_time_is_latest=known.one_of(
            "startingOffsetsByTimestampStrategy", ("error", "latest")
        )
        == "latest",
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=known.parsed("maxTriggerDelay", duration_ms, 15 * 60_000),
        min_partitions=known.count("minPartitions"),
        max_partitions=known.count("maxPartitions"),
        max_records_per_partition=known.count("maxRecordsPerPartition"),
        fail_on_data_loss=known.truth("failOnDataLoss", default=True),
        include_headers=known.truth("includeHeaders", default=False),
        include_fetch_time=known.truth("includeFetchTime", default=False),
        group_id=_group_id(known, client, subscription),
        patience_ms=known.count("kafkaConsumer.pollTimeoutMs")
        or known.client_number("default.api.timeout.ms")
        or 120_000,
        lookup_retries=known.parsed("fetchOffset.numRetries", _natural, 3),
        lookup_pause_ms=known.parsed("fetchOffset.retryIntervalMs", _natural, 1000),
    )


def _check_tasks(known: "_Options") -> None:
    """Refuse to combine partitions into few tasks if another option asks for many."""
    for name in ("minPartitions", "maxRecordsPerPartition"):
        if known.count("maxPartitions") is not None and known.count(name) is not None:
            raise OptionError(
                f"maxPartitions lowers the number of tasks and {name} raises it; "
                "leave one of them out"
            )


def _subscription(known: "_Options") -> Subscription:
    given = [name for name in SUBSCRIPTIONS if known.text(name) is not None]
    if len(given) != 1:
        hint = "" if known.text("topic") is None else " (topic is for writes)"
        raise OptionError(
            "Set exactly one of the options assign, subscribe and subscribePattern, such as "
            f"subscribe=orders; {' and '.join(given) or 'none'} is given{hint}"
        )
    text = known.text(given[0]) or ""
    if given[0] == "assign":
        return Assign(parse_partitions("assign", text))
    if given[0] == "subscribe":
        topics = frozenset(name.strip() for name in text.split(",") if name.strip())
        if not topics:
            raise OptionError(
                "subscribe names no topic; write topics with commas, such as orders,payments"
            )
        return Subscribe(topics)
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(
            f"subscribePattern {text!r} is not a regular expression ({error}); "
            "write one like gpu-.*"
        ) from None
    if not text.strip():
        raise OptionError("subscribePattern is empty; write a regular expression like gpu-.*")
    return SubscribePattern(text)


def _starting(known: "_Options", default: Limit) -> Limit:
    return _limit(
        known, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", default
    )


def _ending(known: "_Options") -> Limit:
    return _limit(
        known, "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", Edge(LATEST)
    )


def _limit(known: "_Options", time: str, times: str, offsets: str, default: Limit) -> Limit:
    """Return the first option that is given, as in Spark's connector."""
    moment = known.parsed(time, _millis, None)
    if moment is not None:
        return AtTimes(time, moment)
    text = known.text(times)
    if text is not None:
        return AtTimes(times, parse_offsets(times, text, least=0))
    text = known.text(offsets)
    if text is None:
        return default
    word = text.strip().lower()
    if word in {"earliest", "latest"}:
        return Edge(EARLIEST if word == "earliest" else LATEST)
    return AtOffsets(offsets, parse_offsets(offsets, text))


def _has(limit: Limit, offset: int) -> bool:
    return isinstance(limit, AtOffsets) and offset in limit.offsets.values()


def _group_id(known: "_Options", client: Mapping[str, str], subscription: Subscription) -> str:
    """Return the group for a stream's progress, by default named after its topics."""
    if client.get("group.id"):
        return client["group.id"]
    match subscription:
        case Assign(partitions):
            what = "-".join(sorted({place.topic for place in partitions}))
        case Subscribe(topics):
            what = "-".join(sorted(topics))
        case SubscribePattern(pattern):
            what = re.sub(r"[^\w.-]+", "_", pattern)
    return f"{known.text('groupIdPrefix') or GROUP_PREFIX}-{what}"[:249]


def duration_ms(text: str) -> int:
    """Parse a duration in Spark's form: 500ms, 10s, 15m, 1h, 1d; a bare number is in ms."""
    if text.strip().isdecimal():
        return int(text)
    try:
        return parse_duration_ms(text)
    except ValueError:
        raise ValueError("write a duration like 500ms, 30s, 15m or 1h") from None


def _millis(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("write milliseconds since 1970")
    return int(text)


def _positive(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("write a whole number from 1 on")
    return int(text)


def _natural(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("write a whole number from 0 on")
    return int(text)


def _bool(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("write true or false")
    return text.strip().lower() == "true"


class _Options:
    """Options by name, in any case; names that neither reads nor writes know are refused."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.values = {name.lower(): value for name, value in options.items()}
        for name in unknown_names(self.values, WRITE_NAMES, READ_NAMES):
            close = nearest(name, READ_NAMES)
            advice = f"did you mean {close}?" if close else "leave it out"
            raise OptionError(f"The source has no option {name!r}; {advice}")

    def text(self, name: str) -> str | None:
        return self.values.get(name.lower())

    def parsed(self, name: str, parse: Callable[[str], T], default: T) -> T:
        text = self.text(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise OptionError(f"{name} is {text!r}; {error}") from None

    def count(self, name: str) -> int | None:
        return self.parsed(name, _positive, None)

    def client_number(self, name: str) -> int | None:
        """Return a setting of the client that is a number."""
        text = self.text(PREFIX + name)
        return None if text is None else whole_number({name: text}, name, 1)

    def truth(self, name: str, *, default: bool) -> bool:
        return self.parsed(name, _bool, default)

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        word = (self.text(name) or words[0]).strip().lower()
        if word not in words:
            raise OptionError(f"{name} is {word!r}; write {' or '.join(words)}")
        return word
