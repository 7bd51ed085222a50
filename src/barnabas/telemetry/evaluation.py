"""How good the findings are, measured against labels that say what was true.

A label names a GPU, a finding and a span of time; an optional one may be reported and may be left
out. By windows of one GPU:

    precision   of the windows reported, how many overlap a label
    recall      of the windows that lie wholly inside a label, how many were reported
    episodes    of the labels, how many were noticed at all

Edges are allowed for: a window within `tolerance_s` of a label's edge is neither a hit nor a miss.
So is what follows from a finding's definition: a card is missing only after `missing_after_s`, and
an ECC trend is over `ecc_quiet_after_s` after its last error. XIDs are events: they have episodes,
and no windows that would have to be filled.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from barnabas.telemetry.catalogue import CATALOGUE, Name
from barnabas.telemetry.finding import us
from barnabas.telemetry.thresholds import Thresholds

TOLERANCE_S = 10.0
"""One window: which of two neighbours an edge falls into is chance."""

PHASES = {
    "idle": (Name.IDLE,),
    "idle_end": (Name.IDLE,),
    "memory_held_idle": (Name.IDLE, Name.PARKED_MEMORY),
    "matmul_bf16": (Name.POWER_CAPPED,),
    "oscillating": (Name.POWER_CAPPED,),
    "launch_bound": (Name.LAUNCH_BOUND,),
    "train_starved": (Name.STARVED,),
    "train_steady": (),
    "memory_copy": (),
}
"""What is to be found in each phase of a recording; nothing else may be."""


class LabelError(Exception):
    """A file of labels cannot be used; the text says where and why."""


class Label(NamedTuple):
    """What was true of a GPU from `start` up to `end`, in microseconds."""

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
    """How one finding fared."""

    finding: str
    right: int
    wrong: int
    due: int
    met: int
    episodes: int
    episodes_met: int

    @property
    def precision(self) -> float | None:
        """The share of reports that were right; None without a report."""
        return _share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        """The share of due windows that were reported; None for events, and without a label."""
        return _share(self.met, self.due)

    @property
    def episode_recall(self) -> float | None:
        """The share of labels that were noticed."""
        return _share(self.episodes_met, self.episodes)


def evaluate(
    labels: Iterable[Label],
    reported: Iterable[Reported],
    windows: Sequence[tuple[int, int]],
    thresholds: Thresholds,
    tolerance_s: float = TOLERANCE_S,
) -> list[Score]:
    """Return a score for each finding that was labelled or reported.

    `windows` are all windows that the pipeline closed: outside of them nothing was due.
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
    """Return what is true of a recording, from its file of phases."""
    found = []
    for row in csv.DictReader(path.read_text().splitlines()):
        if row["phase"] not in PHASES:
            known = ", ".join(PHASES)
            raise LabelError(f"{path}: unknown phase {row['phase']!r}; known are {known}")
        span = (us(float(row["start_unix"])), us(float(row["end_unix"])))
        found += [Label(gpu_id, name, *span) for name in PHASES[row["phase"]]]
    return found


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


def _score(
    name: Name,
    labels: list[Label],
    reported: list[Reported],
    windows: Sequence[tuple[int, int]],
    allowed: int,
) -> Score:
    labels_by_gpu: defaultdict[str, list[Label]] = defaultdict(list)
    for label in labels:
        labels_by_gpu[label.gpu_id].append(label)
    right = sum(_is_right(each, labels_by_gpu[each.gpu_id], allowed) for each in reported)
    told = {(each.gpu_id, each.start) for each in reported}
    duties = [label for label in labels if not label.is_optional]
    due = set() if CATALOGUE[name].is_event else set(_due(duties, windows, allowed))
    shown = [label for label in duties if windows and _is_shown(label, windows)]
    return Score(
        finding=name.value,
        right=right,
        wrong=len(reported) - right,
        due=len(due),
        met=len(due & told),
        episodes=len(shown),
        episodes_met=sum(_is_noticed(label, reported, allowed) for label in shown),
    )


def _delayed(label: Label, thresholds: Thresholds) -> Label:
    """Return the span in which the definition of a finding lets it show."""
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
    """Whether the pipeline closed windows in a label's time; one too short to show has none."""
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
