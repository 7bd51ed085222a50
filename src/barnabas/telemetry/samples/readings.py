"""Data classes for what sources yield: readings of GPUs, and lines that could not be read.

A source never stops at a bad line: it yields a `Refusal`, which is counted, shown and kept as a
dead letter, and goes on. `Tally` counts what carries no value (N/A, DCGM's blank numbers).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from barnabas.telemetry.samples import mig
from barnabas.telemetry.samples.metrics import NO_VALUE_32_FROM, NO_VALUE_FROM
from barnabas.telemetry.samples.sample_messages import Snapshot

_NO_VALUE_TOP = 2**63
_NO_VALUE_32_TOP = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A line that could not be read."""

    where: str
    """The file or URL and the line."""
    reason: str
    raw: bytes


Reading = Snapshot | Refusal


@dataclass(slots=True)
class Tally:
    """What sources left out on purpose."""

    no_value: int = 0
    """Cells that say that there is no value."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Columns and metrics that are not ours, by name."""


def is_no_value(value: float) -> bool:
    """Return whether DCGM means "no value" by this number."""
    return NO_VALUE_FROM <= value <= _NO_VALUE_TOP or NO_VALUE_32_FROM <= value < _NO_VALUE_32_TOP


def by_instant(readings: Iterable[Reading]) -> Iterator[Reading]:
    """Join neighbouring readings of the same GPU, or MIG instance, and instant into one.

    Exporters write metric after metric: the values of a GPU lie apart, but within one instant. The
    instant that is open ends with the first reading of another one.
    """
    open_by_gpu: dict[mig.Place, Snapshot] = {}
    instant_ms: int | None = None
    for reading in readings:
        if isinstance(reading, Refusal):
            yield reading
            continue
        if reading.timestamp_ms != instant_ms:
            yield from open_by_gpu.values()
            open_by_gpu.clear()
            instant_ms = reading.timestamp_ms
        place = mig.place(reading.gpu_id, reading.labels)
        known = open_by_gpu.get(place)
        open_by_gpu[place] = reading if known is None else _joined(known, reading)
    yield from open_by_gpu.values()


def _joined(known: Snapshot, more: Snapshot) -> Snapshot:
    return replace(
        known,
        labels={**more.labels, **known.labels},
        metrics={**more.metrics, **known.metrics},
    )
