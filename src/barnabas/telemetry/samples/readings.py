"""Data classes for the output of sources: readings of GPUs, and unreadable lines.

A source never stops at a bad line: it yields a `Refusal`, which is counted, shown and sent to the
dead-letter topic, and continues. `Tally` counts cells without a value (N/A, DCGM's marks).
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
    """The input that sources skip."""

    no_value: int = 0
    """Cells without a value."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Unknown columns and metrics, by name."""


def is_no_value(value: float) -> bool:
    """Return whether this number is DCGM's mark for "no value"."""
    return NO_VALUE_FROM <= value <= _NO_VALUE_TOP or NO_VALUE_32_FROM <= value < _NO_VALUE_32_TOP


def by_instant(readings: Iterable[Reading]) -> Iterator[Reading]:
    """Join adjacent readings of the same GPU, or MIG instance, and time into one.

    Exporters write metric after metric: the values of a GPU are not adjacent, but have the same
    time. A reading with another time completes the readings before it.
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
