"""The metrics that clients push to brokers, as series by client id."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from confluent_kafka import OFFSET_END

from barnabas.exporter.series_text import COUNTER, GAUGE, Family, page
from barnabas.exporter.topic_following import TopicFollower
from barnabas.metadata.client_metrics_config import TOPIC
from barnabas.monitor.client_metrics import ClientMetricsTable, ClientSeries
from barnabas.monitor.watcher import Watcher

CLIENT = ("client_id",)


class ClientMetricsSeries:
    """Follows the topic of pushes, from `start` to `stop`; what is older is not read."""

    def __init__(self, properties: Mapping[str, object], watcher: Watcher) -> None:
        self._table = ClientMetricsTable()
        self._follower = TopicFollower(properties, TOPIC, watcher, self._apply, start=OFFSET_END)
        self.start, self.stop = self._follower.start, self._follower.stop

    def text(self) -> str:
        """Return the series of all clients that push."""
        with self._follower.lock:
            self._table.forget(time.monotonic())
            series = self._table.series()
        return page(client_families(series))

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        self._table.apply(key, value, time.monotonic())


def client_families(series: Sequence[ClientSeries]) -> Iterator[Family]:
    """Return the families of series, which are in the order of their names."""
    for name, found in groupby(series, key=lambda each: each.name):
        lines = list(found)
        kind = COUNTER if lines[0].is_counter else GAUGE
        values = [((each.client_id,), each.value) for each in lines]
        yield Family(name, kind, "Pushed by clients (KIP-714).", CLIENT, values)
