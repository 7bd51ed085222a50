"""The inventory of GPUs: who reported when, and who fell silent.

Time is event time: the end of the newest window. A fleet that stops altogether has no newer window
and raises nothing here; whoever watches the pipeline sees that no batches come.

When every card of a host is silent, the news is the host: the cards keep their findings, but one
alert speaks for them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from barnabas.telemetry.catalogue import Name
from barnabas.telemetry.finding import SECOND_US, Finding, Window, us
from barnabas.telemetry.memory import Memory, report, step
from barnabas.telemetry.thresholds import Thresholds

HOST_PREFIX = "host:"
"""What stands in `gpu_id` where an alert speaks for all cards of a host."""


@dataclass(frozen=True)
class Fleet:
    """The memory of every GPU that is known."""

    gpus: Mapping[str, Memory]

    def seen(self, subject: str) -> int | None:
        """Return when a GPU, or any of a host, last reported; None for one that is forgotten."""
        if subject.startswith(HOST_PREFIX):
            return self._hosts_seen.get(subject.removeprefix(HOST_PREFIX))
        memory = self.gpus.get(subject)
        return memory.seen if memory else None

    @cached_property
    def _hosts_seen(self) -> dict[str, int]:
        seen: dict[str, int] = {}
        for memory in self.gpus.values():
            if memory.hostname:
                seen[memory.hostname] = max(memory.seen, seen.get(memory.hostname, 0))
        return seen


def advance(
    fleet: Fleet, windows: Iterable[Window], thresholds: Thresholds
) -> tuple[Fleet, list[Finding]]:
    """Take in the rows of one window; return the findings that memory gives, silence included."""
    gpus = dict(fleet.gpus)
    found: list[Finding] = []
    start = end = 0
    for window in windows:
        gpus[window.gpu_id], news = step(gpus.get(window.gpu_id), window, thresholds)
        found += news
        start, end = max(start, window.window_start), max(end, window.window_end)
    forget_before = end - us(thresholds.forget_after_s)
    missing_before = end - us(thresholds.missing_after_s)
    for gpu_id, memory in fleet.gpus.items():
        if gpus[gpu_id].seen <= forget_before:
            del gpus[gpu_id]
        elif gpus[gpu_id].seen <= missing_before:
            found.append(_missing(gpu_id, memory, start, end))
    return Fleet(gpus), found


def alerted(fleet: Fleet, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings as alerts should tell them: one for a host that is silent as a whole."""
    told: list[Finding] = []
    silent: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.finding == Name.MISSING and finding.hostname:
            silent[finding.hostname].append(finding)
        else:
            told.append(finding)
    sizes = _host_sizes(fleet) if silent else {}
    for hostname, cards in silent.items():
        told += [_host(hostname, cards)] if sizes[hostname] == len(cards) > 1 else cards
    return told


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
