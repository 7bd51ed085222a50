"""Carries what sources yield to the topic, each sample when it is due.

A collector takes readings, refusals, outages and ticks in the order in which they come, and loses
none of them silently: each ends in a count of the account.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from barnabas.telemetry.messages import Layout, Snapshot, Tick, encode, encode_tick
from barnabas.telemetry.pacing import Pacer
from barnabas.telemetry.publishing import Publisher
from barnabas.telemetry.readings import Refusal
from barnabas.telemetry.scraping import Outage, Recovery

Item = Snapshot | Refusal | Outage | Recovery | Tick


class Collector:
    """Sends what it is given, and remembers the span of time that it saw."""

    def __init__(
        self,
        publisher: Publisher,
        pacer: Pacer,
        *,
        layout: Layout,
        source: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take where to send to, and whom to tell when an exporter goes or comes back."""
        self._publisher = publisher
        self._pacer = pacer
        self._layout = layout
        self._source = source
        self._tell = tell
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.outages: Counter[str] = Counter()

    def collect(self, items: Iterable[Item]) -> None:
        """Send everything."""
        for item in items:
            self.take(item)

    def take(self, item: Item) -> None:
        """Send one thing, or keep account of it."""
        match item:
            case Snapshot():
                self._send(item)
            case Refusal():
                self._publisher.refuse(item)
            case Tick():
                self._publisher.send(encode_tick(item, self._source), 0)
            case Outage():
                self.outages[item.url] += 1
                if item.is_first:
                    self._tell(f"{item.url} does not answer ({item.reason}); trying on")
            case Recovery():
                self._tell(f"{item.url} answers again")

    def tick(self, hostname: str, after_ms: int) -> None:
        """Move event time on past the last sample, so that its windows close."""
        if self.last_ms is not None:
            self.take(Tick(timestamp_ms=self.last_ms + after_ms, hostname=hostname))

    def _send(self, snapshot: Snapshot) -> None:
        at_ms = snapshot.timestamp_ms
        self._pacer.wait_for(at_ms)
        self.first_ms = at_ms if self.first_ms is None else min(self.first_ms, at_ms)
        self.last_ms = at_ms if self.last_ms is None else max(self.last_ms, at_ms)
        if self._layout is Layout.SNAPSHOT:
            samples = len(snapshot.metrics)
            for message in encode(snapshot, self._layout, self._source):
                self._publisher.send(message, samples)
        else:
            for message in encode(snapshot, self._layout, self._source):
                self._publisher.send(message, 1)
