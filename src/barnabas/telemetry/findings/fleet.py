"""The inventory of GPUs: when each last reported, and which are missing.

Time is event time: the end of the newest window. If a whole fleet stops there is no newer window,
and no finding; the supervisor of the pipeline shows that no batches arrive.

If every card of a host is silent, the cards keep their findings, but there is one alert for the
host.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from barnabas.telemetry.findings.finding import SECOND_US, Finding, Window, us
from barnabas.telemetry.findings.gpu_history import Memory, report, step
from barnabas.telemetry.findings.skew import Skew
from barnabas.telemetry.findings.thresholds import STANDS_INTERVALS, Thresholds
from barnabas.telemetry.samples.catalogue import Name

HOST_PREFIX = "host:"
"""The `gpu_id` of an alert for all cards of a host."""


@dataclass(frozen=True)
class Fleet:
    """The memory of every known GPU."""

    gpus: Mapping[str, Memory]

    def seen(self, subject: str) -> int | None:
        """Return when a GPU, or any of a host, last reported; None for a forgotten one."""
        if subject.startswith(HOST_PREFIX):
            return self._hosts_seen.get(subject.removeprefix(HOST_PREFIX))
        memory = self.gpus.get(subject)
        return _last(memory) if memory else None

    def interval_s(self, subject: str) -> float:
        """Return the distance of a GPU's samples; 0 if it is not known."""
        memory = self.gpus.get(subject)
        return (memory.interval_s or 0.0) if memory else 0.0

    @cached_property
    def _hosts_seen(self) -> dict[str, int]:
        seen: dict[str, int] = {}
        for memory in self.gpus.values():
            if memory.hostname:
                seen[memory.hostname] = max(_last(memory), seen.get(memory.hostname, 0))
        return seen


def advance(
    fleet: Fleet, windows: Iterable[Window], thresholds: Thresholds, skews: Iterable[Skew] = ()
) -> tuple[Fleet, list[Finding]]:
    """Apply the rows of one window; return the findings that need history, missing cards
    included."""
    gpus = dict(fleet.gpus)
    found: list[Finding] = []
    start = end = 0
    for window in windows:
        known = gpus.get(window.gpu_id)
        seen_before = known if known is not None and known.seen else None
        gpus[window.gpu_id], news = step(seen_before, window, thresholds)
        found += news
        start, end = max(start, window.window_start), max(end, window.window_end)
    for skew in skews:
        found += _take_skew(gpus, skew, start, end, thresholds)
    forget_before = end - us(thresholds.forget_after_s)
    missing_before = end - us(thresholds.missing_after_s)
    for gpu_id, memory in fleet.gpus.items():
        if _last(gpus[gpu_id]) <= forget_before:
            del gpus[gpu_id]
        elif _last(gpus[gpu_id]) <= missing_before - _patience(gpus[gpu_id], thresholds):
            found.append(_missing(gpu_id, memory, start, end))
    return Fleet(gpus), found


def _last(memory: Memory) -> int:
    """Return when a card last reported, also if its clock was wrong."""
    return max(memory.seen, memory.heard)


def _take_skew(
    gpus: dict[str, Memory], skew: Skew, start: int, end: int, thresholds: Thresholds
) -> list[Finding]:
    """Return the finding for a wrong clock; the card is not missing, since its samples arrive.

    If a card was refused for its clock and also has samples in time, it sent some of them twice.
    """
    memory = gpus.get(skew.gpu_id)
    in_time_us = end - us(thresholds.missing_after_s)
    if memory is not None and skew.refused == skew.samples and memory.seen > in_time_us:
        return []
    if memory is None:
        memory = Memory(0, skew.hostname, skew.model, skew.namespace)
    gpus[skew.gpu_id] = replace(memory, heard=end)
    window = Window(start, end, skew.gpu_id, skew.hostname, skew.model, skew.namespace)
    return [report(window, Name.CLOCK_SKEW, skew.skew_s, skew.detail)]


def alerted(fleet: Fleet, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings for alerts: a single one for a host whose cards are all silent."""
    alerts: list[Finding] = []
    silent: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.finding == Name.MISSING and finding.hostname:
            silent[finding.hostname].append(finding)
        else:
            alerts.append(finding)
    sizes = _host_sizes(fleet) if silent else {}
    for hostname, cards in silent.items():
        alerts += [_host(hostname, cards)] if sizes[hostname] == len(cards) > 1 else cards
    return alerts


def _patience(memory: Memory, thresholds: Thresholds) -> int:
    """Return how much later than others a card counts as missing, because it reports rarely."""
    rarely_s = STANDS_INTERVALS * (memory.interval_s or 0.0)
    return max(0, us(rarely_s - thresholds.missing_after_s))


def _missing(gpu_id: str, memory: Memory, start: int, end: int) -> Finding:
    window = Window(start, end, gpu_id, memory.hostname, memory.model, memory.namespace)
    silent_s = (end - memory.seen) / SECOND_US
    return report(window, Name.MISSING, silent_s, f"no sample for {silent_s:.0f} s")


def _host_sizes(fleet: Fleet) -> dict[str, int]:
    sizes: defaultdict[str, int] = defaultdict(int)
    for memory in fleet.gpus.values():
        if memory.hostname:
            sizes[memory.hostname] += 1
    return sizes


def _host(hostname: str, cards: list[Finding]) -> Finding:
    namespaces = {each.namespace for each in cards}
    silent_s = min(each.value or 0.0 for each in cards)
    return cards[0]._replace(
        gpu_id=f"{HOST_PREFIX}{hostname}",
        namespace=namespaces.pop() if len(namespaces) == 1 else None,
        value=silent_s,
        detail=f"host missing: none of its {len(cards)} GPUs reported for {silent_s:.0f} s",
    )
