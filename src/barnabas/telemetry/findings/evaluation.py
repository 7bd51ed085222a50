"""Measures precision and recall of findings against labels that say what was true.

A label names a GPU, a finding and a span of time; an optional one may or may not be reported. By
windows of one GPU:

    precision   of the windows reported, how many overlap a label
    recall      of the windows that are completely inside a label, how many were reported
    episodes    of the labels, how many were detected at all

Edges are tolerated: a window within `tolerance_s` of a label's edge is neither a hit nor a miss. So
are consequences of a finding's definition: a card is missing only after `missing_after_s`, and an
ECC trend ends `ecc_quiet_after_s` after its last error. XIDs are events: they have episodes, but no
recall by windows. A finding that needs more frequent samples than a card has is not expected; its
labels are counted separately.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from barnabas.telemetry.findings.finding import us
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

TOLERANCE_S = 10.0
"""One window: it is random into which of two windows an edge falls."""

PHASES = {
    "idle": (Name.IDLE,),
    "idle_end": (Name.IDLE,),
    "memory_held_idle": (Name.IDLE, Name.PARKED_MEMORY),
    "matmul_bf16": (Name.POWER_CAPPED,),
    "oscillating": (Name.POWER_CAPPED,),
    "launch_bound": (Name.LAUNCH_BOUND,),
    "train_starved": (Name.STARVED,),
    "train_steady": (),
    "memory_copy": (Name.MEMORY_BOUND,),
}
"""The expected findings in each phase of the bundled recording; others are wrong."""

BOUNDS = {
    "idle": (Name.IDLE,),
    "held": (Name.IDLE, Name.PARKED_MEMORY),
    "compute": (),
    "memory": (Name.MEMORY_BOUND,),
    "pcie": (Name.PCIE_BOUND,),
    "nvlink": (Name.NVLINK_BOUND,),
    "launches": (Name.LAUNCH_BOUND,),
}
"""The same for recordings of `tools/record_gpu.py`, by the bottleneck of a phase."""
HELD = "held"
"""The name of its phases that only hold memory; their bottleneck is called idle."""
MAY_BE_CAPPED = ("compute", "memory")
"""Work that may reach the power limit, depending on the card."""


class LabelError(Exception):
    """A file of labels cannot be used; the text says where and why."""


class Label(NamedTuple):
    """A true finding of a GPU from `start` up to `end`, in microseconds."""

    gpu_id: str
    finding: str
    start: int
    end: int
    is_optional: bool = False


class Reported(NamedTuple):
    """A window for which the pipeline reported a finding."""

    gpu_id: str
    finding: str
    start: int
    end: int


Row = TypeVar("Row", Label, Reported)


@dataclass(frozen=True, kw_only=True)
class Score:
    """The score of one finding."""

    finding: str
    right: int
    wrong: int
    due: int
    met: int
    episodes: int
    episodes_met: int
    not_looked_for: int = 0
    """Labels of cards whose samples are too far apart for the finding."""

    @property
    def precision(self) -> float | None:
        """The share of correct reports; None without a report."""
        return _share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        """The share of due windows that were reported; None for events, and without a label."""
        return _share(self.met, self.due)

    @property
    def episode_recall(self) -> float | None:
        """The share of detected labels."""
        return _share(self.episodes_met, self.episodes)


def evaluate(
    labels: Iterable[Label],
    reported: Iterable[Reported],
    windows: Sequence[tuple[int, int]],
    thresholds: Thresholds,
    tolerance_s: float = TOLERANCE_S,
    intervals_s: Mapping[str, float] | None = None,
) -> list[Score]:
    """Return a score for each finding that was labelled or reported.

    `windows` are all windows that the pipeline closed: outside of them nothing is expected.
    `intervals_s` has the distance of each GPU's samples, if it is known.
    """
    allowed = us(tolerance_s)
    by_finding = _grouped(labels), _grouped(reported)
    names = [name for name in Name if name in by_finding[0] or name in by_finding[1]]
    return [
        _score(
            name,
            [_delayed(each, thresholds) for each in by_finding[0].get(name, [])],
            by_finding[1].get(name, []),
            windows,
            allowed,
            _coarse(name, intervals_s or {}, thresholds),
        )
        for name in names
    ]


def read_labels(path: Path) -> list[Label]:
    """Return the findings of a file of labels, JSON lines as `telemetry simulate` writes them."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            body = json.loads(line)
            if "finding" in body:
                span = (_instant(body["start"]), _instant(body["end"]))
                optional = bool(body.get("optional", False))
                found.append(Label(str(body["gpu_id"]), body["finding"], *span, optional))
        except (ValueError, KeyError, TypeError) as error:
            raise LabelError(
                f"{path}, line {number}: wanted gpu_id, finding, start and end as JSON ({error})"
            ) from error
    return found


def read_phases(path: Path, gpu_id: str) -> list[Label]:
    """Return the labels of a recording, from its file of phases.

    A file with a column `bound` is one of `tools/record_gpu.py`, whose phases have any names.
    """
    found = []
    for row in csv.DictReader(path.read_text().splitlines()):
        span = (us(float(row["start_unix"])), us(float(row["end_unix"])))
        found += [Label(gpu_id, name, *span) for name in expected_in(row, path)]
        if row.get("bound") in MAY_BE_CAPPED:
            found.append(Label(gpu_id, Name.POWER_CAPPED, *span, True))
    return found


def expected_in(row: Mapping[str, str], path: Path) -> tuple[Name, ...]:
    """Return the expected findings of a phase."""
    if "bound" in row:
        kind, known, word = row["bound"], BOUNDS, "bound"
        kind = HELD if row["phase"] == HELD else kind
    else:
        kind, known, word = row["phase"], PHASES, "phase"
    if kind not in known:
        raise LabelError(f"{path}: unknown {word} {kind!r}; known are {', '.join(known)}")
    return known[kind]


def read_lake(lake: Path) -> tuple[list[Reported], list[tuple[int, int]]]:
    """Return the findings of a lake, and the windows that it closed."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    def rows(table: str, columns: list[str]) -> list[list[object]]:
        found = ds.dataset(lake / table, format="parquet").to_table(columns=columns)
        times = ("window_start", "window_end")
        return [
            (found[name].cast(pa.int64()) if name in times else found[name]).to_pylist()
            for name in columns
        ]

    reports = rows("findings", ["gpu_id", "finding", "window_start", "window_end"])
    closed = rows("gold_10s", ["window_start", "window_end"])
    spans = sorted(set(zip(*closed, strict=True)))
    return [Reported(*row) for row in zip(*reports, strict=True)], spans


def read_intervals(lake: Path) -> dict[str, float]:
    """Return the distance of each GPU's samples, by the median of its windows."""
    import pyarrow.dataset as ds

    gold = ds.dataset(lake / "gold_10s", format="parquet")
    if "interval_s" not in gold.schema.names:  # written by version 0.1
        return {}
    known = ds.field("interval_s").is_valid() & (ds.field("level") == "gpu")
    rows = gold.to_table(columns=["gpu_id", "interval_s"], filter=known)
    found = rows.group_by("gpu_id").aggregate([("interval_s", "approximate_median")])
    medians = zip(found["gpu_id"], found["interval_s_approximate_median"], strict=True)
    return {gpu_id.as_py(): median.as_py() for gpu_id, median in medians}


def _score(
    name: Name,
    labels: list[Label],
    reported: list[Reported],
    windows: Sequence[tuple[int, int]],
    allowed: int,
    coarse: frozenset[str],
) -> Score:
    labels_by_gpu: defaultdict[str, list[Label]] = defaultdict(list)
    for label in labels:
        labels_by_gpu[label.gpu_id].append(label)
    right = sum(_is_right(each, labels_by_gpu[each.gpu_id], allowed) for each in reported)
    found = {(each.gpu_id, each.start) for each in reported}
    required = [label for label in labels if not label.is_optional]
    duties = [label for label in required if label.gpu_id not in coarse]
    due = set() if CATALOGUE[name].is_event else set(_due(duties, windows, allowed))
    shown = [label for label in duties if windows and _is_shown(label, windows)]
    return Score(
        finding=name.value,
        right=right,
        wrong=len(reported) - right,
        due=len(due),
        met=len(due & found),
        episodes=len(shown),
        episodes_met=sum(_is_noticed(label, reported, allowed) for label in shown),
        not_looked_for=len(required) - len(duties),
    )


def _coarse(name: Name, intervals_s: Mapping[str, float], thresholds: Thresholds) -> frozenset[str]:
    """Return the GPUs whose samples are too far apart for a finding."""
    limit_s = thresholds.coarse_above_s(name)
    if limit_s is None:
        return frozenset()
    return frozenset(gpu_id for gpu_id, each_s in intervals_s.items() if each_s > limit_s)


def _delayed(label: Label, thresholds: Thresholds) -> Label:
    """Return the span in which a finding can be reported, by its definition."""
    if label.finding == Name.MISSING:
        return label._replace(start=min(label.start + us(thresholds.missing_after_s), label.end))
    return label


def _is_right(report: Reported, labels: list[Label], allowed: int) -> bool:
    tail = us(Thresholds().ecc_quiet_after_s) if report.finding == Name.ECC_TREND else 0
    return any(
        report.start < label.end + allowed + tail and label.start - allowed < report.end
        for label in labels
    )


def _due(
    labels: list[Label], windows: Sequence[tuple[int, int]], allowed: int
) -> Iterable[tuple[str, int]]:
    for label in labels:
        for start, end in windows:
            if label.start + allowed <= start and end <= label.end - allowed:
                yield label.gpu_id, start


def _is_shown(label: Label, windows: Sequence[tuple[int, int]]) -> bool:
    """Whether the pipeline closed windows in a label's time; a very short label has none."""
    return label.start < label.end and label.start < windows[-1][1] and windows[0][0] < label.end


def _is_noticed(label: Label, reported: list[Reported], allowed: int) -> bool:
    return any(_is_right(each, [label], allowed) for each in reported if each[0] == label.gpu_id)


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.finding].append(row)
    return grouped


def _instant(value: object) -> int:
    if isinstance(value, int | float):
        return us(value)
    moment = datetime.fromisoformat(str(value))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return us(moment.timestamp())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
