"""The collector's main loop: takes samples from the sources and sends each when it is due.

A collector handles readings, refusals, outages and ticks in the order in which they arrive, and
counts each of them in its account, so that none is lost silently.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from barnabas.telemetry.collect.pacing import Pacer
from barnabas.telemetry.collect.publishing import Publisher
from barnabas.telemetry.collect.scraping import Outage, Recovery, Round, Scrape
from barnabas.telemetry.collect.vitals import Vitals
from barnabas.telemetry.samples.readings import Refusal
from barnabas.telemetry.samples.sample_messages import Layout, Snapshot, Tick, encode, encode_tick

Item = Snapshot | Refusal | Outage | Recovery | Scrape | Round | Tick


class Collector:
    """Sends samples, and remembers their first and last time."""

    def __init__(
        self,
        publisher: Publisher,
        pacer: Pacer,
        *,
        layout: Layout,
        source: str,
        tell: Callable[[str], None] = lambda _: None,
        vitals: Vitals | None = None,
    ) -> None:
        """Take the publisher, and the callback for exporters that fail or recover."""
        self._publisher = publisher
        self._pacer = pacer
        self._layout = layout
        self._source = source
        self._tell = tell
        self._is_behind = False
        self.vitals = vitals or Vitals()
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.outages: Counter[str] = Counter()
        self.scrapes = 0
        self.skipped = 0
        self.last_reason = ""
        """The reason of the last failed scrape."""

    @property
    def is_without_any(self) -> bool:
        """Whether exporters were scraped and none ever returned a page."""
        was_asked = bool(self.outages) or not self.vitals.exporters
        return self.vitals.rounds > 0 and was_asked and not self.scrapes

    def collect(self, items: Iterable[Item]) -> None:
        """Send everything."""
        for item in items:
            self.take(item)

    def take(self, item: Item) -> None:
        """Send one item, or count it."""
        match item:
            case Snapshot():
                self._send(item)
            case Refusal():
                self._publisher.refuse(item)
            case Tick():
                self._publisher.send(encode_tick(item, self._source), 0)
            case Outage():
                self.outages[item.url] += 1
                self.last_reason = f"{item.url}: {item.reason}"
                self.vitals.failed(item.url, item.seconds)
                if item.is_first:
                    self._tell(f"{item.url} does not answer ({item.reason}); trying on")
            case Recovery():
                self._tell(f"{item.url} answers again")
            case Scrape():
                self.scrapes += 1
                self.vitals.scraped(item.url, item.seconds, item.samples)
            case Round():
                self._begin_round(item)

    def tick(self, hostname: str, after_ms: int) -> None:
        """Advance event time past the last sample, so that its windows close."""
        if self.last_ms is not None:
            self.take(Tick(timestamp_ms=self.last_ms + after_ms, hostname=hostname))

    def _begin_round(self, item: Round) -> None:
        self.skipped += item.skipped
        self.vitals.begun(item.targets, item.skipped)
        if item.skipped and not self._is_behind:
            rounds = "1 round was" if item.skipped == 1 else f"{item.skipped:,} rounds were"
            self._tell(f"{rounds} skipped: the one before took too long")
        self._is_behind = item.skipped > 0

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
