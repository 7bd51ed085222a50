"""The rows of each table in `barnabas top`, sorted, with what makes them stand out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from barnabas.admin.cluster_overview import UP, Broker
from barnabas.monitor.lag_rules import SEVERITY
from barnabas.monitor.states import (
    ClusterState,
    GroupPartitionState,
    GroupState,
    GroupStatus,
    PartitionState,
    TopicState,
)
from barnabas.top.short_numbers import UNKNOWN, age, clean, rate, short, size

BAD, WARNING, GOOD, QUIET, PLAIN = "bold red", "yellow", "green", "dim", ""

STATUS_STYLES = {
    GroupStatus.OK: GOOD,
    GroupStatus.UNKNOWN: QUIET,
    GroupStatus.BEHIND: WARNING,
    GroupStatus.REWOUND: WARNING,
    GroupStatus.STALLED: BAD,
    GroupStatus.STOPPED: BAD,
}


class Panel(StrEnum):
    """A table."""

    BROKERS = "BROKERS"
    GROUPS = "GROUPS"
    TOPICS = "TOPICS"
    TOPIC = "PARTITIONS"
    GROUP = "GROUP PARTITIONS"
    BROKER = "LED HERE"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; the one without a width takes the room that is left."""

    title: str
    width: int | None = None
    is_right: bool = True
    importance: int = 1
    """Columns with a smaller one are left out first on a narrow terminal."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    cells: Sequence[str]
    styles: Mapping[int, str]
    """Of cells, by their place."""


class Sort(NamedTuple):
    """An order of rows."""

    column: int
    """The place of the column that is sorted by."""
    key: Callable[[Any], Any]


def _descending(value: float | None) -> float:
    return float("inf") if value is None else -value


def _oldest_first(each: GroupState | GroupPartitionState) -> float:
    """Return a key by lag in time; a lag older than all samples comes first."""
    if each.lag_s is None and each.lag:
        return float("-inf")
    return _descending(each.lag_s)


SORTS: Mapping[Panel, Sequence[Sort]] = {
    Panel.BROKERS: (
        Sort(0, lambda each: each.id),
        Sort(3, lambda each: -each.leaders),
        Sort(6, lambda each: 1.0 if each.disk_free is None else each.disk_free),
    ),
    Panel.GROUPS: (
        Sort(2, lambda each: (_oldest_first(each), each.name)),
        Sort(3, lambda each: (_descending(each.lag), each.name)),
        Sort(1, lambda each: (-SEVERITY[each.status], _oldest_first(each), each.name)),
        Sort(0, lambda each: each.name),
    ),
    Panel.TOPICS: (
        Sort(2, lambda each: (_descending(each.records_per_s), each.name)),
        Sort(3, lambda each: (_descending(each.bytes_per_s), each.name)),
        Sort(4, lambda each: (_descending(each.size_bytes), each.name)),
        Sort(0, lambda each: each.name),
    ),
    Panel.TOPIC: (
        Sort(0, lambda each: each.number),
        Sort(6, lambda each: _descending(each.records_per_s)),
        Sort(7, lambda each: _descending(each.size_bytes)),
    ),
    Panel.GROUP: (
        Sort(2, lambda each: (_oldest_first(each), each.topic, each.number)),
        Sort(3, lambda each: (_descending(each.lag), each.topic, each.number)),
        Sort(0, lambda each: (each.topic, each.number)),
    ),
    Panel.BROKER: (
        Sort(1, lambda each: (_descending(each.records_per_s), each.topic, each.number)),
        Sort(3, lambda each: (_descending(each.size_bytes), each.topic, each.number)),
        Sort(0, lambda each: (each.topic, each.number)),
    ),
}

COLUMNS: Mapping[Panel, Sequence[Column]] = {
    Panel.BROKERS: (
        Column("ID", 5, importance=9),
        Column("BROKER", None, is_right=False, importance=9),
        Column("STATE", 18, is_right=False, importance=8),
        Column("LEADERS", 8, importance=5),
        Column("REPLICAS", 9, importance=3),
        Column("IN SYNC", 8, importance=4),
        Column("DISK FREE", 10, importance=6),
    ),
    Panel.GROUPS: (
        Column("GROUP", None, is_right=False, importance=9),
        Column("STATUS", 8, is_right=False, importance=8),
        Column("BEHIND", 9, importance=9),
        Column("LAG", 8, importance=7),
        Column("READ/S", 8, importance=5),
        Column("ETA", 9, importance=6),
        Column("MEMBERS", 8, importance=3),
    ),
    Panel.TOPICS: (
        Column("TOPIC", None, is_right=False, importance=9),
        Column("TROUBLE", 16, is_right=False, importance=6),
        Column("RECORDS/S", 10, importance=8),
        Column("BYTES/S", 9, importance=7),
        Column("SIZE", 9, importance=5),
        Column("PARTITIONS", 11, importance=3),
    ),
    Panel.TOPIC: (
        Column("PARTITION", 10, importance=9),
        Column("LEADER", 7, importance=8),
        Column("REPLICAS", None, is_right=False, importance=7),
        Column("OUT OF SYNC", 12, is_right=False, importance=7),
        Column("START", 9, importance=3),
        Column("END", 11, importance=6),
        Column("RECORDS/S", 10, importance=6),
        Column("SIZE", 9, importance=5),
    ),
    Panel.GROUP: (
        Column("PARTITION", None, is_right=False, importance=9),
        Column("STATUS", 8, is_right=False, importance=8),
        Column("BEHIND", 9, importance=9),
        Column("LAG", 8, importance=7),
        Column("COMMITTED", 11, importance=5),
        Column("READ/S", 8, importance=5),
        Column("CLIENT", 14, is_right=False, importance=4),
    ),
    Panel.BROKER: (
        Column("PARTITION", None, is_right=False, importance=9),
        Column("RECORDS/S", 10, importance=8),
        Column("BYTES/S", 9, importance=7),
        Column("SIZE", 9, importance=6),
        Column("REPLICAS", 12, is_right=False, importance=5),
    ),
}


class Table:
    """The sorted items of a table; only the rows that are shown are made."""

    def __init__(
        self, items: Sequence[Any], key: Callable[[Any], str], make: Callable[[Any], Row]
    ) -> None:
        self._items = items
        self._key = key
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def keys(self) -> list[str]:
        """Return the keys of all rows."""
        return [self._key(each) for each in self._items]

    def rows(self, first: int, count: int) -> list[Row]:
        """Return some rows."""
        return [self._make(each) for each in self._items[first : first + count]]


def table(state: ClusterState, panel: Panel, sort: int, item: str = "") -> Table:
    """Return a table, of one topic, group or broker where it is about one."""
    order = SORTS[panel][sort % len(SORTS[panel])]
    found = sorted(_items(state, panel, item), key=order.key)
    match panel:
        case Panel.BROKERS:
            leader = None if state.overview.quorum is None else state.overview.quorum.leader
            return Table(found, lambda each: str(each.id), lambda each: _broker(each, leader))
        case Panel.GROUPS:
            return Table(found, lambda each: str(each.name), _group)
        case Panel.TOPICS:
            return Table(found, lambda each: str(each.name), _topic)
        case Panel.TOPIC:
            return Table(found, lambda each: str(each.number), _partition)
        case Panel.GROUP:
            return Table(found, _place, _group_partition)
        case Panel.BROKER:
            return Table(found, _place, _led)


def length(state: ClusterState, panel: Panel) -> int:
    """Return how many rows a table of the first page has."""
    return len(_items(state, panel, ""))


def _items(state: ClusterState, panel: Panel, item: str) -> Sequence[Any]:
    match panel:
        case Panel.BROKERS:
            return state.overview.brokers
        case Panel.GROUPS:
            return list(state.groups.values())
        case Panel.TOPICS:
            return _user_topics(state)
        case Panel.TOPIC:
            topic = state.topics.get(item)
            return () if topic is None else topic.partitions
        case Panel.GROUP:
            group = state.groups.get(item)
            return () if group is None else group.partitions
        case Panel.BROKER:
            return _led_by(state, item)


def _place(each: PartitionState | GroupPartitionState) -> str:
    return f"{each.topic}-{each.number}"


def _user_topics(state: ClusterState) -> list[TopicState]:
    """Return all topics, but internal ones only while they have trouble."""
    return [each for each in state.topics.values() if not each.is_internal or trouble(each)]


def _led_by(state: ClusterState, broker: str) -> list[PartitionState]:
    return [
        each
        for topic in state.topics.values()
        for each in topic.partitions
        if str(each.leader) == broker
    ]


def trouble(topic: TopicState) -> str:
    """Return the worst state of a topic's partitions; "" if all are in sync."""
    if any(each.leader is None for each in topic.partitions):
        return "offline"
    behind = sum(len(each.in_sync) < len(each.replicas) for each in topic.partitions)
    return f"{behind} out of sync" if behind else ""


def _broker(each: Broker, leader: int | None) -> Row:
    state = f"{each.state}, controller" if each.id == leader else each.state
    free = UNKNOWN if each.disk_free is None else f"{each.disk_free:.0%}"
    scarce = each.disk_free is not None and each.disk_free < 0.2
    return Row(
        (
            str(each.id),
            clean(each.address),
            state,
            f"{each.leaders:,}",
            f"{each.replicas:,}",
            f"{each.in_sync:,}",
            free,
        ),
        {2: PLAIN if each.state == UP else BAD, 6: WARNING if scarce else PLAIN},
    )


def _group(each: GroupState) -> Row:
    return Row(
        (
            clean(each.name),
            each.status.value,
            age(each.lag_s),
            short(each.lag),
            rate(each.read_per_s),
            age(each.eta_s),
            str(len(each.members)),
        ),
        {1: STATUS_STYLES[each.status]},
    )


def _topic(each: TopicState) -> Row:
    said = trouble(each)
    return Row(
        (
            clean(each.name),
            said,
            rate(each.records_per_s),
            size(each.bytes_per_s),
            size(each.size_bytes),
            f"{len(each.partitions):,}",
        ),
        {1: BAD if said == "offline" else WARNING},
    )


def _partition(each: PartitionState) -> Row:
    missing = [broker for broker in each.replicas if broker not in each.in_sync]
    return Row(
        (
            str(each.number),
            "none" if each.leader is None else str(each.leader),
            " ".join(map(str, each.replicas)),
            " ".join(map(str, missing)),
            short(each.start),
            UNKNOWN if each.end is None else f"{each.end:,}",
            rate(each.records_per_s),
            size(each.size_bytes),
        ),
        {1: BAD if each.leader is None else PLAIN, 3: WARNING},
    )


def _group_partition(each: GroupPartitionState) -> Row:
    return Row(
        (
            f"{clean(each.topic)}-{each.number}",
            each.status.value,
            age(each.lag_s),
            short(each.lag),
            UNKNOWN if each.committed is None else f"{each.committed:,}",
            rate(each.read_per_s),
            UNKNOWN if each.client_id is None else clean(each.client_id),
        ),
        {1: STATUS_STYLES[each.status]},
    )


def _led(each: PartitionState) -> Row:
    return Row(
        (
            f"{clean(each.topic)}-{each.number}",
            rate(each.records_per_s),
            size(each.bytes_per_s),
            size(each.size_bytes),
            " ".join(map(str, each.replicas)),
        ),
        {},
    )
