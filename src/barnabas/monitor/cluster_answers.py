"""What one collection brings: the answers of brokers, reduced to what an observer needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.admin.cluster_overview import Answers
from barnabas.admin.scopes import Place
from barnabas.monitor.states import GroupMember


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """One group, as its coordinator describes it."""

    name: str
    type: str | None
    """Classic, consumer or share, in lower case; None if the broker does not report it."""
    state: str
    assignor: str = ""
    coordinator: int | None = None
    members: Sequence[GroupMember] | None = ()
    """None if they could not be asked for."""
    commits: Mapping[Place, int] | None = field(default_factory=dict)
    """None if they could not be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """What a broker serves over HTTP."""

    address: str
    samples: Mapping[str, Sequence[tuple[Mapping[str, str], float]]] = field(default_factory=dict)
    """Labels and values by the names of metrics."""
    slow_requests: Sequence[Mapping[str, object]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The result of one collection."""

    at_ms: int
    """By the monotonic clock, when the end offsets had been asked for."""
    wall_ms: int
    took_ms: int = 0
    answers: Answers
    starts: Mapping[Place, int] = field(default_factory=dict)
    ends: Mapping[Place, int] = field(default_factory=dict)
    """High watermarks."""
    sizes: Mapping[Place, int] = field(default_factory=dict)
    """The sizes of the leaders' logs."""
    groups: Mapping[str, GroupAnswer] = field(default_factory=dict)
    has_all_groups: bool = True
    """Whether every broker listed its groups."""
    scrapes: Mapping[int, Scrape] = field(default_factory=dict)
    """By broker."""
    written_ms: Mapping[tuple[Place, int], int] = field(default_factory=dict)
    """Timestamps of records, by partition and offset, that the observer asked for."""
    troubles: Sequence[str] = ()
