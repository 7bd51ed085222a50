"""The shipped alert rules that the console can judge itself, from one state of the cluster.

Names, severities and times are those of docs/operations.md. A rule returns what is wrong now;
`AlertBoard` adds for how long it has been so. One cause raises one alert: rules about consequences
are silent while a rule about their cause is not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from barnabas.admin.cluster_overview import UP
from barnabas.admin.inspection import now_ms
from barnabas.admin.scopes import Place
from barnabas.admin.wording import format_duration, plural
from barnabas.console.state.broker_rows import controller_of
from barnabas.health.quorum_margin import lags
from barnabas.monitor.states import ClusterState, GroupStatus

CRITICAL, WARNING = "critical", "warning"
FIRING, PENDING, OK = "firing", "pending", "ok"
RUNBOOK = "docs/operations.md#alert-"
DISK_LOW, DISK_CRITICAL, DISK_FILLING = 0.2, 0.05, 0.4
FULL_SOON_S = 4 * 3600
LAG_TIME_S = 300
MARGIN_S = 3600
PRODUCE_SLOW_S = 0.1
LAG_LARGE = 1000
LOOP_BUSY = 0.9
STANDING_STILL = (GroupStatus.STOPPED, GroupStatus.STALLED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong now."""

    summary: str
    labels: Mapping[str, str]
    value: float | None = None


Judge = Callable[[ClusterState], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert: what is judged, and for how long it must be wrong."""

    name: str
    severity: str
    for_s: float
    judge: Judge


@dataclass(frozen=True, slots=True)
class Alert:
    """The state of a rule for one set of labels."""

    name: str
    severity: str
    state: str
    since_ms: int | None
    labels: Mapping[str, str]
    summary: str
    value: float | None

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "name": self.name,
            "severity": self.severity,
            "state": self.state,
            "since_ms": self.since_ms,
            "labels": dict(self.labels),
            "summary": self.summary,
            "value": self.value,
            "runbook": RUNBOOK + self.name,
            "source": "console",
        }


class AlertBoard:
    """Remembers since when things are wrong."""

    def __init__(self, now_ms: Callable[[], int] = now_ms) -> None:
        self._now_ms = now_ms
        self._since: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self.alerts: list[Alert] = []
        """The newest alerts: those that fire first, then pending ones, then rules that are ok."""

    def judge(self, state: ClusterState) -> None:
        """Judge a new state."""
        # While no broker answers, the last state comes again with its old time.
        at_ms = max(state.taken_ms, self._now_ms())
        found: list[Alert] = []
        seen: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        for rule in RULES:
            wrong = list(rule.judge(state))
            for finding in wrong:
                key = rule.name, tuple(sorted(finding.labels.items()))
                since_ms = seen[key] = self._since.get(key, at_ms)
                lasts = at_ms - since_ms >= rule.for_s * 1000
                found.append(_alert(rule, finding, FIRING if lasts else PENDING, since_ms))
            if not wrong:
                found.append(
                    Alert(rule.name, rule.severity, OK, None, {}, "Nothing is wrong", None)
                )
        self._since = seen
        order = (FIRING, PENDING, OK)
        self.alerts = sorted(
            found, key=lambda each: (order.index(each.state), each.severity != CRITICAL, each.name)
        )


def _alert(rule: Rule, finding: Finding, state: str, since_ms: int) -> Alert:
    return Alert(
        rule.name, rule.severity, state, since_ms, finding.labels, finding.summary, finding.value
    )


def _brokers_down(state: ClusterState) -> Iterator[Finding]:
    for each in state.overview.brokers:
        if each.state != UP:
            labels = {"broker": str(each.id)}
            yield Finding(f"Broker {each.id} at {each.address} is {each.state}", labels)


def _no_controller(state: ClusterState) -> Iterator[Finding]:
    if controller_of(state) is None:
        yield Finding("The cluster has no controller; metadata cannot change", {})


def _partitions(where: Callable[[ClusterState], list[Place]], what: str) -> Judge:
    def judge(state: ClusterState) -> Iterator[Finding]:
        found = where(state)
        if found:
            yield Finding(f"{plural(len(found), 'partition')} {what}", {}, len(found))

    return judge


def _under_replicated(state: ClusterState) -> list[Place]:
    found = state.overview.partitions
    has_cause = any(
        each.state != UP or (each.disk_free is not None and each.disk_free < DISK_CRITICAL)
        for each in state.overview.brokers
    )
    return [] if found.reassigning or has_cause else list(found.under_replicated)


def _disks(limit: float, least: float = 0) -> Judge:
    def judge(state: ClusterState) -> Iterator[Finding]:
        for each in state.overview.brokers:
            if each.disk_free is not None and least <= each.disk_free < limit:
                summary = f"Broker {each.id} has {each.disk_free:.0%} of its disk left"
                yield Finding(summary, {"broker": str(each.id)}, round(each.disk_free, 4))

    return judge


def _disks_filling(state: ClusterState) -> Iterator[Finding]:
    for each in state.overview.brokers:
        disk = state.disks.get(each.id)
        if disk is None or disk.full_in_s is None or each.disk_free is None:
            continue
        if DISK_CRITICAL <= each.disk_free < DISK_FILLING and disk.full_in_s < FULL_SOON_S:
            when = format_duration(disk.full_in_s * 1000)
            summary = f"The disk of broker {each.id} will be full in {when}"
            yield Finding(summary, {"broker": str(each.id)}, round(disk.full_in_s))


def _produce_slow(state: ClusterState) -> Iterator[Finding]:
    for broker, figures in state.figures.items():
        slow_s = figures.produce_p99_s
        if slow_s is not None and slow_s > PRODUCE_SLOW_S:
            summary = f"p99 of Produce on broker {broker} is {slow_s * 1000:.0f} ms"
            yield Finding(summary, {"broker": str(broker)}, slow_s)


def _loops_busy(state: ClusterState) -> Iterator[Finding]:
    for broker, figures in state.figures.items():
        busy = figures.loop_busy_ratio
        if busy is not None and busy > LOOP_BUSY:
            summary = f"The event loop of broker {broker} is {busy:.0%} busy"
            yield Finding(summary, {"broker": str(broker)}, busy)


def _late_groups(state: ClusterState) -> Iterator[Finding]:
    for each in state.groups.values():
        reads = each.status not in STANDING_STILL
        if reads and each.lag_s is not None and each.lag_s > LAG_TIME_S:
            summary = f"Group {each.name} is {format_duration(each.lag_s * 1000)} behind"
            yield Finding(summary, {"consumergroup": each.name}, round(each.lag_s))


def _growing_groups(state: ClusterState) -> Iterator[Finding]:
    for each in state.groups.values():
        is_large = each.lag is not None and each.lag > LAG_LARGE
        if is_large and each.status is GroupStatus.BEHIND:
            summary = f"The lag of group {each.name} grows: {plural(each.lag or 0, 'record')}"
            yield Finding(summary, {"consumergroup": each.name}, each.lag)


def _stopped_groups(state: ClusterState) -> Iterator[Finding]:
    for each in state.groups.values():
        if each.status in STANDING_STILL and each.lag:
            word = "has stopped" if each.status is GroupStatus.STOPPED else "stands still"
            summary = f"Group {each.name} {word} with {plural(each.lag, 'record')} unread"
            yield Finding(summary, {"consumergroup": each.name}, each.lag)


def _losing_groups(state: ClusterState) -> Iterator[Finding]:
    for each in state.groups.values():
        margin_s = each.retention_margin_s
        if margin_s is not None and margin_s < MARGIN_S and each.lag:
            when = format_duration(max(0.0, margin_s) * 1000)
            summary = f"Retention deletes records that group {each.name} has not read in {when}"
            yield Finding(summary, {"consumergroup": each.name}, round(margin_s))


def _voters_behind(state: ClusterState) -> Iterator[Finding]:
    quorum = state.overview.quorum
    for each in () if quorum is None else quorum.voters:
        if lags(each):
            summary = f"Voter {each.id} is {plural(each.lag or 0, 'record')} behind"
            yield Finding(summary, {"voter": str(each.id)}, each.lag)


RULES = (
    Rule("BrokerDown", CRITICAL, 60, _brokers_down),
    Rule("NoController", CRITICAL, 30, _no_controller),
    Rule(
        "OfflinePartitions",
        CRITICAL,
        30,
        _partitions(lambda state: state.overview.partitions.offline, "without a leader"),
    ),
    Rule(
        "UnderMinIsr",
        CRITICAL,
        60,
        _partitions(lambda state: state.overview.partitions.under_min_isr, "reject acks=all"),
    ),
    Rule(
        "UnderReplicated",
        WARNING,
        300,
        _partitions(_under_replicated, "with replicas out of sync"),
    ),
    Rule("DiskLow", WARNING, 300, _disks(DISK_LOW, DISK_CRITICAL)),
    Rule("DiskCritical", CRITICAL, 60, _disks(DISK_CRITICAL)),
    Rule("DiskFullSoon", WARNING, 600, _disks_filling),
    Rule("ProduceSlow", WARNING, 600, _produce_slow),
    Rule("LoopBusy", WARNING, 600, _loops_busy),
    Rule("LagTime", WARNING, 300, _late_groups),
    Rule("LagGrows", WARNING, 300, _growing_groups),
    Rule("GroupStopped", WARNING, 600, _stopped_groups),
    Rule("GroupLosesRecords", CRITICAL, 300, _losing_groups),
    Rule("QuorumBehind", WARNING, 60, _voters_behind),
)
