"""Writes metrics in the text format of Prometheus, version 0.0.4, a few lines at a time.

A part of the metrics is a generator of texts, mostly of one line each. `slices` joins them to
pieces that are short work each; between two pieces the event loop does other things. A part that
works something out before it has a line yields empty texts meanwhile.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from barnabas.server.metrics.histogram import SHOWN_FROM, SHOWN_UNTIL, US_PER_S, Histogram
from barnabas.server.metrics.metric_families import Family, Names

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TEXTS_A_SLICE = 500
SLICE_NS = 300_000
"""A slice ends after this time even if it has fewer texts."""
LABEL_MAX = 200
"""Longer values of labels are cut: clients choose some of them."""

Texts = Iterator[str]


def slices(texts: Texts, clock_ns: Callable[[], int] = time.perf_counter_ns) -> Texts:
    """Join texts to pieces that are short work each."""
    piece: list[str] = []
    until_ns = clock_ns() + SLICE_NS
    for text in texts:
        piece.append(text)
        if len(piece) == TEXTS_A_SLICE or clock_ns() >= until_ns:
            yield "".join(piece)
            piece.clear()
            until_ns = clock_ns() + SLICE_NS
    yield "".join(piece)


class Writer:
    """Writes metrics in one spelling of Kafka's names."""

    def __init__(self, names: Names = Names.STRIMZI) -> None:
        self._names = names

    def head(self, family: Family) -> str:
        """Return the lines before the samples of a metric."""
        name = family.spelled(self._names)
        return f"# HELP {name} {family.meaning}\n# TYPE {name} {family.kind}\n"

    def start(self, family: Family) -> str:
        """Return how each sample of a metric begins."""
        return family.spelled(self._names)

    def one(self, family: Family, value: float) -> Texts:
        """Write a metric with a single value."""
        yield f"{self.head(family)}{self.start(family)} {number(value)}\n"

    def labelled(self, family: Family, samples: Iterable[tuple[Iterable[str], float]]) -> Texts:
        """Write a metric with values by label, in the order of the family's labels."""
        yield self.head(family)
        start = self.start(family)
        for values, value in samples:
            yield f"{start}{{{labels(family, values)}}} {number(value)}\n"

    def histograms(
        self, family: Family, found: Mapping[str, Histogram], scale: float = US_PER_S
    ) -> Texts:
        """Write histograms by the value of the family's label; "" for one without."""
        yield self.head(family)
        for value, histogram in found.items():
            yield _histogram(self.start(family), family, value, histogram, scale)


def _histogram(name: str, family: Family, value: str, histogram: Histogram, scale: float) -> str:
    own = labels(family, [value]) if family.labels else ""
    before = f"{own}," if own else ""
    lines = []
    below = list(accumulate(histogram.counts))
    is_count = scale == 1
    for power in range(1 if is_count else SHOWN_FROM, 14 if is_count else SHOWN_UNTIL + 1):
        bound = 2**power - 1 if is_count else 2**power / scale
        lines.append(f'{name}_bucket{{{before}le="{bound:g}"}} {below[2 * power]}')
    count = below[-1]
    lines.append(f'{name}_bucket{{{before}le="+Inf"}} {count}')
    shown = f"{{{own}}}" if own else ""
    lines.append(f"{name}_sum{shown} {number(histogram.total / scale)}")
    lines.append(f"{name}_count{shown} {count}")
    return "\n".join(lines) + "\n"


def labels(family: Family, values: Iterable[str]) -> str:
    """Return the labels of a sample, as they are written between braces."""
    pairs = zip(family.labels, values, strict=True)
    return ",".join(f'{name}="{escaped(value)}"' for name, value in pairs)


def escaped(value: str) -> str:
    """Return the value of a label such that its text ends where it should."""
    cut = value[:LABEL_MAX]
    return cut.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """Return a number as text; whole ones without a fraction, and exactly."""
    if isinstance(value, int):
        return str(int(value))  # also of True and False
    return str(int(value)) if value.is_integer() and abs(value) < 1 << 53 else repr(value)
