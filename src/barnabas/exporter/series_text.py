"""Writes families of series in the text format of Prometheus, version 0.0.4."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
INFINITY = float("inf")

Line = tuple[Sequence[str], float]
"""The values of the labels, and the value."""


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name."""

    name: str
    type: str
    help: str
    labels: Sequence[str] = ()
    lines: Sequence[Line] = field(default_factory=list)


def page(families: Iterable[Family]) -> str:
    """Return the text of families; those without a series are left out."""
    return "".join(text for each in families if each.lines for text in _family(each))


def histogram(
    name: str,
    text: str,
    label: str,
    counts: Iterable[tuple[str, Sequence[int], float]],
    bounds: Sequence[float],
) -> str:
    """Return a histogram: for each label value the counts of its buckets, and the sum.

    There is one count more than bounds: that of values above the last bound.
    """
    lines = [f"# HELP {name} {text}\n# TYPE {name} {HISTOGRAM}\n"]
    for value, buckets, total in counts:
        labelled = f'{label}="{_escaped(value)}"'
        seen = 0
        for bound, count in zip((*bounds, INFINITY), buckets, strict=True):
            seen += count
            lines.append(f'{name}_bucket{{{labelled},le="{_number(bound)}"}} {seen}\n')
        lines.append(f"{name}_sum{{{labelled}}} {_number(total)}\n")
        lines.append(f"{name}_count{{{labelled}}} {seen}\n")
    return "".join(lines) if len(lines) > 1 else ""


def _family(family: Family) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {family.help}\n# TYPE {name} {family.type}\n"
    for values, value in family.lines:
        labels = ",".join(
            f'{label}="{_escaped(text)}"' for label, text in zip(family.labels, values, strict=True)
        )
        yield f"{name}{{{labels}}} {_number(value)}\n" if labels else f"{name} {_number(value)}\n"


def _escaped(text: str) -> str:
    if '"' in text or "\\" in text or "\n" in text:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text


def _number(value: float) -> str:
    if value == INFINITY:
        return "+Inf"
    return repr(value)
