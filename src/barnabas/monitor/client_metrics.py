"""Metrics that clients pushed to brokers (KIP-714), from the records of their topic.

The broker writes a push as it came: the key says which client sent it and how it is compressed.
`ClientMetricsTable` decodes pushes and holds one value for each client id and metric: clients come
and go, and a label for each instance would give Prometheus ever new series. Values of several
instances or partitions of a client id are added where they are counts, and the largest counts
where they are gauges.

Java clients send NaN for what they have not measured yet; such a value is left out.

A client that has not pushed for two of its intervals is forgotten.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.model.errors import BrokerError
from barnabas.monitor.otlp_metrics import OtlpError, Point, points
from barnabas.protocol.compression import Codec, decompress

BYTES_MAX = 16 << 20
"""Of one push, decompressed."""
CLIENTS_MAX = 10_000
SERIES_MAX = 100_000
TOTALS_MAX = 1_000
"""Of one client, if it counts from its start on; clients are asked not to."""
INTERVALS = 2
PREFIX = "kafka_client_"
KAFKA = "org.apache.kafka."
_OTHER = re.compile(r"[^a-zA-Z0-9_]+")

Place = tuple[str, tuple[tuple[str, str], ...]]
"""A metric and the attributes of a point."""


class ClientSeries(NamedTuple):
    """One value for Prometheus."""

    name: str
    client_id: str
    value: float
    is_counter: bool


@dataclass
class Instance:
    """One client process."""

    client_id: str
    expires_s: float = 0.0
    gauges: dict[Place, float] = field(default_factory=dict)
    totals: dict[Place, float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many values of gauges it has."""
        return len(self.gauges)


class ClientMetricsTable:
    """The last values of each client."""

    def __init__(self) -> None:
        self._instances: dict[str, Instance] = {}
        self._counts: dict[tuple[str, str], float] = {}
        """By client id and name; instances that are gone stay in it while the client id is used."""
        self._size = 0
        """How many values of gauges there are."""
        self.refused = 0
        """Records that could not be read, or for which there was no room."""

    def apply(self, key: bytes | None, value: bytes | None, now_s: float) -> None:
        """Apply a record; one that is not understood is counted."""
        try:
            facts = _facts(key)
            told = points(decompress(Codec(facts.codec), value or b"", BYTES_MAX))
        except (ValueError, KeyError, TypeError, RecursionError, BrokerError):
            self.refused += 1
            return
        found = [each for each in told if not math.isnan(each.value)]
        self.forget(now_s)
        gauges = {_place(each): each.value for each in found if not each.is_sum}
        instance = self._instances.get(facts.instance_id) or Instance(facts.client_id)
        size = self._size - instance.size + len(gauges)
        is_new = facts.instance_id not in self._instances
        if size > SERIES_MAX or (is_new and len(self._instances) >= CLIENTS_MAX):
            self.refused += 1
            return
        self._instances[facts.instance_id] = instance
        instance.expires_s = now_s if facts.is_last else now_s + INTERVALS * facts.interval_s
        instance.gauges, self._size = gauges, size
        for each in found:
            if each.is_sum:
                self._count(instance, each)

    def forget(self, now_s: float) -> None:
        """Forget clients that have not pushed for two intervals, or said that they end."""
        gone = [name for name, each in self._instances.items() if each.expires_s < now_s]
        for name in gone:
            self._size -= self._instances.pop(name).size
        if gone:
            left = {each.client_id for each in self._instances.values()}
            self._counts = {place: n for place, n in self._counts.items() if place[0] in left}

    def series(self) -> list[ClientSeries]:
        """Return all values, by name and client id."""
        found: dict[tuple[str, str], float] = {}
        for instance in self._instances.values():
            for (metric, _), value in instance.gauges.items():
                place = (metric_name(metric), instance.client_id)
                found[place] = max(value, found.get(place, value))
        gauges = [ClientSeries(*place, value, is_counter=False) for place, value in found.items()]
        counters = [
            ClientSeries(f"{metric_name(metric)}_total", client_id, value, is_counter=True)
            for (client_id, metric), value in self._counts.items()
        ]
        return sorted([*gauges, *counters])[:SERIES_MAX]

    def _count(self, instance: Instance, point: Point) -> None:
        """Add what a client counted since its last push."""
        place = _place(point)
        before = 0.0 if point.is_delta else instance.totals.get(place, 0.0)
        added = point.value if point.value < before else point.value - before
        if not point.is_delta and (place in instance.totals or len(instance.totals) < TOTALS_MAX):
            instance.totals[place] = point.value
        key = (instance.client_id, point.name)
        if key in self._counts or len(self._counts) < SERIES_MAX:
            self._counts[key] = self._counts.get(key, 0.0) + max(0.0, added)


class _Facts(NamedTuple):
    instance_id: str
    client_id: str
    codec: int
    interval_s: float
    is_last: bool


def _facts(key: bytes | None) -> _Facts:
    found = json.loads(key or b"")
    if not isinstance(found, Mapping):
        raise OtlpError("the key is no JSON object")
    return _Facts(
        str(found["client_instance_id"]),
        str(found["client_id"]),
        int(found["codec"]),
        int(found["interval_ms"]) / 1000,
        bool(found["is_last"]),
    )


def _place(point: Point) -> Place:
    return point.name, tuple(sorted(point.attributes.items()))


def metric_name(name: str) -> str:
    """Return Prometheus's name of a metric of OpenTelemetry's."""
    short = name.removeprefix(KAFKA).removesuffix(".total")
    return PREFIX + _OTHER.sub("_", short).strip("_")
