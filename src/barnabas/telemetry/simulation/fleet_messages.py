"""Encodes a simulated fleet as messages, in their order of arrival.

All messages of a card are the same except for the values, so each card has a format string and only
numbers are filled in: so millions of samples a minute are cheap.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from itertools import starmap
from typing import Any

from barnabas.telemetry.samples.sample_messages import (
    MODEL_LABEL,
    SAMPLE_TYPE,
    SNAPSHOT_TYPE,
    Layout,
    Message,
    format_time,
    headers,
)
from barnabas.telemetry.simulation.fleet_plan import Card, Plan, make_plan
from barnabas.telemetry.simulation.fleet_settings import FleetSettings
from barnabas.telemetry.simulation.labelling import Labels
from barnabas.telemetry.simulation.signals import SIMULATED, Signals
from barnabas.telemetry.simulation.traces import load_traces
from barnabas.telemetry.simulation.truth import Truth

LATE_BY_MS = 30_000
CONTAINER = "main"
DECIMALS = {"power_usage": 2, "sm_active": 4, "tensor_active": 4, "dram_active": 4}
FORMATS = tuple(
    f"%.{DECIMALS[each.column]}f" if each.column in DECIMALS else "%d" for each in SIMULATED
)
Batch = tuple[int, list[Message]]
Encode = Callable[[str, list[float]], list[Message]]


class Simulation:
    """A planned fleet; its messages are generated on demand."""

    def __init__(self, settings: FleetSettings) -> None:
        self.settings = settings
        self.plan: Plan = make_plan(settings)
        signals = Signals(self.plan, settings, load_traces())
        self.truth: list[Truth] = list(Labels(self.plan, settings, signals).truths())

    @property
    def samples_per_message(self) -> int:
        """The number of values in a message."""
        return len(SIMULATED) if self.settings.layout is Layout.SNAPSHOT else 1

    @property
    def last_ms(self) -> int:
        """The time of the latest sample."""
        settings = self.settings
        offset_ms = max(self.plan.host_offsets_ms)
        return settings.start_ms + (settings.ticks - 1) * settings.interval_ms + offset_ms

    def messages(self) -> Iterator[Message]:
        """Return every message, in order of arrival."""
        for _, batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Batch]:
        """Return the messages of each host and tick, with the time at which they are due."""
        late: deque[Batch] = deque()
        for host, due_ms, batch in self._host_ticks():
            while late and late[0][0] <= due_ms:
                yield late.popleft()
            if host == self.plan.late_host:
                late.append((due_ms + LATE_BY_MS, batch))
            else:
                yield due_ms, batch
        yield from late

    def _host_ticks(self) -> Iterator[tuple[int, int, list[Message]]]:
        """Return (host, time, messages) in event time; each call starts from the beginning."""
        settings, plan = self.settings, self.plan
        signals = Signals(plan, settings, load_traces())
        encoders = [_encoder(card, settings) for card in plan.cards]
        cards_by_host: dict[int, list[int]] = {}
        for number, each in enumerate(plan.cards):
            cards_by_host.setdefault(each.host, []).append(number)
        order = sorted(cards_by_host, key=lambda host: (plan.host_offsets_ms[host], host))
        for tick, (values, reports) in enumerate(signals.ticks()):
            rows: list[list[float]] = values.tolist()
            present: list[bool] = reports.tolist()
            base_ms = settings.start_ms + tick * settings.interval_ms
            for host in order:
                due_ms = base_ms + plan.host_offsets_ms[host]
                when = format_time(due_ms)
                batch: list[Message] = []
                for card in cards_by_host[host]:
                    if present[card]:
                        batch += encoders[card](when, rows[card])
                yield host, due_ms, batch


def simulate(settings: FleetSettings) -> Simulation:
    """Plan a fleet."""
    return Simulation(settings)


def _encoder(card: Card, settings: FleetSettings) -> Encode:
    if settings.layout is Layout.SNAPSHOT:
        return _snapshot_encoder(card, settings.source)
    return _sample_encoder(card, settings.source)


def _snapshot_encoder(card: Card, source: str) -> Encode:
    names = (f'"{each.dcgm}":{form}' for each, form in zip(SIMULATED, FORMATS, strict=True))
    fields = {**_identity(card), "model": card.model.name, "labels": _labels(card)}
    form = f'{{"timestamp":"%s",{_fixed(fields)},"metrics":{{{",".join(names)}}}}}'
    key, head = card.gpu_id.encode(), headers(source, SNAPSHOT_TYPE)

    def encode(when: str, row: list[float]) -> list[Message]:
        return [Message(key, (form % (when, *row)).encode(), head)]

    return encode


def _sample_encoder(card: Card, source: str) -> Encode:
    labels = _fixed({"labels": {**_labels(card), MODEL_LABEL: card.model.name}})
    identity = _fixed(_identity(card))
    forms = [
        f'{{"timestamp":"%s","metric_name":"{each.dcgm}",{identity},"value":{form},{labels}}}'
        for each, form in zip(SIMULATED, FORMATS, strict=True)
    ]
    key, head = card.gpu_id.encode(), headers(source, SAMPLE_TYPE)

    def one(form: str, value: float, when: str) -> Message:
        return Message(key, (form % (when, value)).encode(), head)

    def encode(when: str, row: list[float]) -> list[Message]:
        whens = [when] * len(forms)
        return list(starmap(one, zip(forms, row, whens, strict=True)))

    return encode


def _identity(card: Card) -> dict[str, Any]:
    return {"gpu_id": card.gpu_id, "device": card.device, "hostname": card.hostname}


def _labels(card: Card) -> dict[str, str]:
    labels = {"gpu": str(card.index)}
    if card.pod:
        labels |= {"namespace": card.namespace, "pod": card.pod, "container": CONTAINER}
    return labels


def _fixed(fields: dict[str, Any]) -> str:
    """Return the inside of a JSON object as part of a format: its own per cent signs doubled."""
    return json.dumps(fields, separators=(",", ":"))[1:-1].replace("%", "%%")
