"""Validates each message of a part of a batch: returns silver rows, and faults by message.

    read (documents) -> clocks -> duplicates -> rows

The result is a function of the messages, the watermark and the earlier samples, so that a repeated
batch has the same result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.skew import Skew, observed
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.samples import documents
from barnabas.telemetry.samples.documents import Faults, Readings
from barnabas.telemetry.samples.duplicates import Seen, sample_numbers, source_numbers, text_numbers
from barnabas.telemetry.samples.metrics import COLUMNS
from barnabas.telemetry.samples.other_metrics import name_numbers
from barnabas.telemetry.samples.sample_refusals import Fault, Reason

SILVER = arrow_schema(lake_tables.SILVER)
_SECOND_US = 1_000_000
_LONG_AGO_US = -(1 << 60)

Newest = dict[int, int]
"""The event time of each partition."""


@dataclass(frozen=True)
class Rules:
    """The rules for a message. Times are event times in microseconds."""

    late_before_us: int | None
    """The watermark of the batch: older messages are late."""
    late_us: int
    """How far a message may be behind earlier ones of its partition. So a wrong clock is detected
    in the first batch, and in batches of any size."""
    ahead_us: int
    tick_ahead_us: int
    value_bytes_max: int
    skew_us: int = 5_000_000
    """From here on a clock that is ahead is reported."""


@dataclass
class Validated:
    """The results for a run of messages."""

    rows: pa.Table
    numbers: np.ndarray
    """The number of each row's sample, see `duplicates`."""
    sources: np.ndarray
    """The number of each row's GPU or MIG instance."""
    faults: Faults
    event_us: int | None
    """The newest event time; None if the messages do not say."""
    skews: list[Skew] = field(default_factory=list)


@dataclass
class Verdicts:
    """The result for a part of a batch."""

    parts: list[Validated] = field(default_factory=list)

    def rows(self) -> pa.Table:
        """Return the silver rows."""
        whole = pa.concat_tables([each.rows for each in self.parts]) if self.parts else None
        return SILVER.empty_table() if whole is None else whole

    def skews(self) -> list[Skew]:
        """Return the wrong clocks."""
        return [skew for each in self.parts for skew in each.skews]

    def event_us(self) -> int | None:
        """Return the newest event time."""
        known = [each.event_us for each in self.parts if each.event_us is not None]
        return max(known, default=None)


def validate(messages: pa.RecordBatch, rules: Rules, seen: Seen, newest: Newest) -> Validated:
    """Validate messages in the order of the topic; track samples and event time."""
    found = documents.read(messages.column("value").to_pylist(), rules.value_bytes_max)
    found = _without(found, _unknown_types(messages, found.faults))
    broker_us = _microseconds(messages.column("timestamp"))
    partitions = messages.column("partition").to_numpy()
    skews = _ahead_skews(found, broker_us, rules)
    found = _in_time(found, broker_us, partitions, rules, newest, skews)
    ticks = _ticks_in_time(found, broker_us, rules)
    sources = _sources(found)
    numbers = sample_numbers(sources, found.time_us, found.values, name_numbers(found.other))
    repeated = seen.add(found.time_us, numbers)
    if repeated.any():
        fault = Fault(Reason.DUPLICATE, "this GPU's sample of this time is there already")
        found = _refuse(found, repeated, [fault] * int(repeated.sum()))
        sources, numbers = sources[~repeated], numbers[~repeated]
    event_us = _event_time(found, broker_us, ticks)
    return Validated(_rows(found, messages), numbers, sources, found.faults, event_us, skews)


def _sources(found: Readings) -> np.ndarray:
    gpus, instances = (pa.array(found.identity[n], pa.string()) for n in ("gpu_id", "instance"))
    return source_numbers(gpus, instances)


def _microseconds(times: pa.Array) -> np.ndarray:
    whole = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    values: np.ndarray = whole.to_numpy(zero_copy_only=False)
    return values


def _unknown_types(messages: pa.RecordBatch, faults: Faults) -> np.ndarray:
    """Return the messages whose content-type header names an unknown layout."""
    headers = messages.column("headers")
    entries = headers.flatten()
    named = pc.fill_null(pc.equal(entries.field("key"), "content-type"), False)
    given = entries.field("value").filter(named)
    strange = [t for t in given.unique().to_pylist() if _main_type(t) not in documents.KNOWN_TYPES]
    if not strange:
        return np.array([], dtype=np.int64)
    owners = pc.list_parent_indices(headers).filter(named)
    chosen = pc.is_in(given, pa.array(strange, given.type))
    messages_met = zip(owners.filter(chosen).to_pylist(), given.filter(chosen), strict=True)
    refused = {m: _main_type(t.as_py()) for m, t in messages_met}
    for message, kind in refused.items():
        fault = Fault(Reason.UNKNOWN_LAYOUT, f"content-type {kind!r:.100} is not known")
        faults[message] = [fault]
    return np.array(sorted(refused), dtype=np.int64)


def _main_type(header: bytes | None) -> str:
    return (header or b"").decode(errors="replace").partition(";")[0].strip().lower()


def _without(found: Readings, messages: np.ndarray) -> Readings:
    if len(messages) == 0:
        return found
    ticks = ~np.isin(found.tick_messages, messages)
    found.ticks_us, found.tick_messages = found.ticks_us[ticks], found.tick_messages[ticks]
    return documents.taken(found, ~np.isin(found.message, messages))


def _in_time(
    found: Readings,
    broker_us: np.ndarray,
    partitions: np.ndarray,
    rules: Rules,
    newest: Newest,
    skews: list[Skew],
) -> Readings:
    """Return the readings that are neither late nor ahead; add wrong clocks to `skews`."""
    arrived_us = broker_us[found.message]
    ahead = found.time_us > arrived_us + rules.ahead_us
    if ahead.any():
        found = _refuse(found, ahead, _ahead_faults(found.time_us, arrived_us, ahead))
    believed = np.minimum(found.time_us, broker_us[found.message])
    before = np.empty(len(believed), dtype=np.int64)
    order = np.argsort(found.message, kind="stable")
    before[order] = _before(believed[order], partitions[found.message[order]], newest)
    late_before_us = np.maximum(before - rules.late_us, rules.late_before_us or _LONG_AGO_US)
    late = found.time_us < late_before_us
    if late.any():
        skews += _late_skews(found, late, broker_us, late_before_us + rules.late_us, rules)
    return _refuse(found, late, _late_faults(found.time_us[late], late_before_us[late]))


def _ahead_skews(found: Readings, broker_us: np.ndarray, rules: Rules) -> list[Skew]:
    """Return the clocks that are ahead: all samples of the card are ahead, or refused."""
    arrived_us = broker_us[found.message]
    skew_us = found.time_us - arrived_us
    ahead = skew_us > rules.skew_us
    if not ahead.any():
        return []
    gpus = text_numbers(pa.array(found.identity["gpu_id"], pa.string()))
    refused = skew_us > rules.ahead_us
    ahead &= refused | ~np.isin(gpus, gpus[~ahead])
    places = np.flatnonzero(ahead)
    times = found.time_us[places], arrived_us[places], arrived_us[places]
    return observed(found.identity, places, times, skew_us[places], refused[places], rules.skew_us)


def _late_skews(
    found: Readings, late: np.ndarray, broker_us: np.ndarray, fleet_us: np.ndarray, rules: Rules
) -> list[Skew]:
    """Return the clocks that are behind, if the fleet's time is near the broker's clock.

    In a replay of the past the clock of the broker cannot be used.
    """
    places = np.flatnonzero(late)
    sent, arrived, fleet = found.time_us[late], broker_us[found.message[late]], fleet_us[late]
    is_live = arrived - fleet < rules.late_us
    skew_us = sent - np.where(is_live, np.maximum(arrived, fleet), fleet)
    times = sent, arrived, fleet
    everything = np.ones(len(places), dtype=bool)
    return observed(found.identity, places, times, skew_us, everything, rules.skew_us)


def _before(time_us: np.ndarray, partitions: np.ndarray, newest: Newest) -> np.ndarray:
    """Return the newest time before each message in its partition."""
    found = np.empty(len(time_us), dtype=np.int64)
    for partition in np.unique(partitions).tolist():
        here = partitions == partition
        start = newest.get(partition, _LONG_AGO_US)
        running = np.maximum.accumulate(np.concatenate(([start], time_us[here])))
        found[here], newest[partition] = running[:-1], int(running[-1])
    return found


def _ahead_faults(time_us: np.ndarray, arrived_us: np.ndarray, ahead: np.ndarray) -> list[Fault]:
    seconds = (time_us[ahead] - arrived_us[ahead]) / _SECOND_US
    text = "its clock is {:.0f} s ahead of the broker's"
    return [Fault(Reason.CLOCK_AHEAD, text.format(each)) for each in seconds.tolist()]


def _late_faults(time_us: np.ndarray, late_before_us: np.ndarray) -> list[Fault]:
    text = "{:.1f} s before the watermark, which stands at {}"
    return [
        Fault(Reason.LATE, text.format((until - at) / _SECOND_US, _clock(until)))
        for at, until in zip(time_us.tolist(), late_before_us.tolist(), strict=True)
    ]


def _clock(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // _SECOND_US, UTC).isoformat()


def _refuse(found: Readings, refused: np.ndarray, faults: Iterable[Fault]) -> Readings:
    if not refused.any():
        return found
    for message, fault in zip(found.message[refused].tolist(), faults, strict=True):
        found.faults[message] = [fault]
    return documents.taken(found, ~refused)


def _ticks_in_time(found: Readings, broker_us: np.ndarray, rules: Rules) -> np.ndarray:
    arrived_us = broker_us[found.tick_messages]
    ahead = found.ticks_us > arrived_us + rules.tick_ahead_us
    faults = _ahead_faults(found.ticks_us, arrived_us, ahead)
    for message, fault in zip(found.tick_messages[ahead].tolist(), faults, strict=True):
        found.faults[message] = [fault]
    kept: np.ndarray = found.ticks_us[~ahead]
    return kept


def _event_time(found: Readings, broker_us: np.ndarray, ticks_us: np.ndarray) -> int | None:
    """Return the newest event time.

    A sample never advances it beyond the broker's clock: one card whose clock is minutes ahead must
    not make the rest of the fleet late. A tick also advances it.
    """
    believed = np.minimum(found.time_us, broker_us[found.message])
    whole = np.concatenate((believed, ticks_us))
    return int(whole.max()) if len(whole) else None


def _rows(found: Readings, messages: pa.RecordBatch) -> pa.Table:
    identity = {name: pa.array(texts, pa.string()) for name, texts in found.identity.items()}
    columns = found.values.T
    metrics = {
        name: pa.array(np.ascontiguousarray(columns[index]), from_pandas=True)
        for index, name in enumerate(COLUMNS)
    }
    places = pa.array(found.message)
    coordinates = {name: messages.column(name).take(places) for name in ("partition", "offset")}
    times = {"timestamp": pa.array(found.time_us).cast(pa.timestamp("us", tz="UTC"))}
    arrays = identity | times | metrics | {"other": found.other} | coordinates
    return pa.table([arrays[name] for name in SILVER.names], schema=SILVER)
