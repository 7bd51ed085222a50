"""Parses whole pages of an exporter, with a cache of the label texts of its earlier pages.

An exporter writes the same names and labels with every scrape; only the values change. A
`PageReader` belongs to one exporter and remembers the meaning of each label text. A known line
costs two lookups and one `float()`. `exposition` parses every other line, with the same result.

A page must be complete: a truncated page may end in a number that looks like a value. `problem`
refuses those, and pages that are not dcgm-exporter's.
"""

import math
from collections.abc import Iterator, Mapping

from barnabas.telemetry.collect.exposition import PREFIX, Line, parse_line, snapshot_of
from barnabas.telemetry.samples import mig
from barnabas.telemetry.samples.metrics import NO_VALUE_32_FROM, NO_VALUE_FROM
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally, is_no_value
from barnabas.telemetry.samples.sample_messages import Snapshot

FAMILY = "DCGM_"
"""The prefix of every metric of dcgm-exporter."""
END_MARK = "# EOF"
"""The last line of a page of OpenMetrics."""
SPARE_TEXTS = 1_000
"""How many label texts may be remembered beyond those of a page, before all are forgotten."""
NO_VALUE_32_TOP = 2**31
LOWEST = -1e15
"""Larger values are parsed by the grammar, which refuses infinity."""


class Owner:
    """The meaning of a label text: the GPU or instance that its values belong to."""

    __slots__ = ("base", "joins", "place")

    def __init__(self, base: Snapshot) -> None:
        """Take a snapshot without metrics."""
        self.base = base
        self.place = mig.place(base.gpu_id, base.labels)
        self.joins: dict[Owner, Owner] = {}

    def joined(self, more: "Owner") -> "Owner":
        """Return the owner with the labels of both, as some metrics have additional labels."""
        known = self.joins.get(more)
        if known is None:
            known = self.joins[more] = self._join(more)
        return known

    def _join(self, more: "Owner") -> "Owner":
        base = self.base
        if more.base.labels.keys() <= base.labels.keys():
            return self
        labels = {**more.base.labels, **base.labels}
        return Owner(_with(base, base.timestamp_ms, labels, {}))


Found = dict[mig.Place, tuple[Owner, dict[str, float]]]
"""The snapshots of a page so far, by GPU or MIG instance."""


def problem(text: str) -> str:
    """Say why a page cannot be used; "" where it can."""
    if not text.strip():
        return "answered 200 with an empty page"
    if not text.endswith("\n") and not text.endswith(END_MARK):
        return "the page was cut short: its last line has no end"
    if not text.startswith(FAMILY) and f"\n{FAMILY}" not in text:
        return f"answered 200 with a page without metrics of DCGM; it begins {text[:40]!r}"
    return ""


class PageReader:
    """Reads the pages of one exporter."""

    def __init__(
        self, *, where: str, default_hostname: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """Take the exporter's address, and labels for all its samples; the page's own win."""
        self._where = where
        self._default_hostname = default_hostname
        self._labels = dict(labels or {})
        self._names: dict[str, str] = {}
        self._owners: dict[str, Owner] = {}

    def read(self, text: str, *, at_ms: int, tally: Tally) -> Iterator[Reading]:
        """Read a page that was scraped at a time; return refusals, then snapshots by GPU."""
        lines = text.split("\n")
        found: Found = {}
        known_name, known_owner = self._names.get, self._owners.get
        for index, line in enumerate(lines):
            name, _, rest = line.partition("{")
            labels, _, tail = rest.rpartition("}")
            metric, owner = known_name(name), known_owner(labels)
            if metric is None or owner is None or (value := _plain(tail)) is None:
                reason = self._read_line(line, found, tally)
                if reason:
                    place = f"{self._where} line {index + 1}"
                    yield Refusal(where=place, reason=reason, raw=line.rstrip("\r").encode())
                continue
            slot = found.get(owner.place)
            if slot is None or slot[0] is not owner:
                slot = _slot(found, owner)
            slot[1].setdefault(metric, value)
        for owner, metrics in found.values():
            yield _with(owner.base, at_ms, owner.base.labels, metrics)
        if len(self._owners) + len(self._names) > 2 * len(lines) + SPARE_TEXTS:
            self._owners.clear()
            self._names.clear()

    def _read_line(self, line: str, found: Found, tally: Tally) -> str:
        """Read a line by the grammar; return why it was refused, "" if it was not."""
        if not line.strip() or line.lstrip().startswith("#"):
            return ""
        try:
            sample = parse_line(line)
            if not sample.name.startswith(PREFIX):
                tally.unknown[sample.name] += 1
            elif math.isinf(sample.value):
                return "an infinite value"
            elif math.isnan(sample.value) or is_no_value(sample.value):
                tally.no_value += 1
            else:
                _slot(found, self._owner(line, sample))[1].setdefault(sample.name, sample.value)
        except ValueError as error:
            return str(error)
        return ""

    def _owner(self, line: str, sample: Line) -> Owner:
        """Return the owner of a sample, and cache it if the line can be split at its braces."""
        name, _, rest = line.partition("{")
        labels, _, _ = rest.rpartition("}")
        can_be_cut = sample.labels_end == len(name) + 1 + len(labels)
        owner = self._owners.get(labels) if can_be_cut else None
        if owner is None:
            base = snapshot_of(
                {**self._labels, **sample.labels},
                at_ms=0,
                default_hostname=self._default_hostname,
                metrics={},
            )
            owner = Owner(base)
        if can_be_cut:
            self._names[name] = sample.name
            self._owners[labels] = owner
        return owner


def _plain(text: str) -> float | None:
    """Read a plain value; return None if the grammar must parse it."""
    try:
        value = float(text)
    except ValueError:
        return None
    is_usual = value < NO_VALUE_32_FROM or NO_VALUE_32_TOP <= value < NO_VALUE_FROM
    if not is_usual or "_" in text or value < LOWEST or not text.isascii():
        return None
    whole = int(value)
    return whole if whole == value else value


def _slot(found: Found, owner: Owner) -> tuple[Owner, dict[str, float]]:
    """Return the snapshot that collects the values of a GPU, with all of its labels."""
    slot = found.get(owner.place)
    if slot is None:
        slot = (owner, {})
    elif slot[0] is not owner:
        slot = (slot[0].joined(owner), slot[1])
    found[owner.place] = slot
    return slot


def _with(
    base: Snapshot, at_ms: int, labels: Mapping[str, str], metrics: Mapping[str, float]
) -> Snapshot:
    """Return a snapshot of the same GPU; `dataclasses.replace` takes twice as long."""
    return Snapshot(
        timestamp_ms=at_ms,
        gpu_id=base.gpu_id,
        device=base.device,
        hostname=base.hostname,
        model=base.model,
        labels=labels,
        metrics=metrics,
    )
