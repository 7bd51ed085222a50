"""Scrapes exporters in rounds; an exporter that is slow or down does not delay the others.

Scrapes run on threads, each with one deadline for the whole scrape. Answers are returned as they
arrive. Exporters that did not answer the last time are scraped last. A round whose time has passed
is skipped, since late rounds would only repeat the present values.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from queue import Empty, SimpleQueue
from threading import Thread

from barnabas.telemetry.collect.exporter_pages import PageReader, problem
from barnabas.telemetry.collect.fetching import FetchError, get
from barnabas.telemetry.collect.pacing import NAP_S, Clock
from barnabas.telemetry.collect.targets import Target
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Tick

SCRAPE_TIMEOUT_S = 10.0
THREADS_MAX = 256
PAGE_BYTES_MAX = 64 << 20
PATIENCE_S = 1.0
"""How long to wait for a scrape after its deadline; only a name lookup takes longer."""


@dataclass(frozen=True)
class Outage:
    """An exporter that returned no page."""

    url: str
    reason: str
    is_first: bool = True
    """Whether it answered the last time."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Recovery:
    """An exporter that answers again."""

    url: str


@dataclass(frozen=True)
class Page:
    """The answer of an exporter, and its time."""

    url: str
    text: str
    at_ms: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Scrape:
    """A page was read completely."""

    url: str
    samples: int
    seconds: float


@dataclass(frozen=True)
class Round:
    """All exporters were scraped."""

    targets: tuple[str, ...]
    skipped: int
    """How many earlier rounds were skipped because their time had passed."""


Scraped = Reading | Outage | Recovery | Scrape | Round | Tick


def fetch(target: Target, timeout_s: float) -> Page | Outage:
    """Get one page; a failure is returned as a value."""
    began_s = time.monotonic()
    try:
        body = get(target.url, target.access, timeout_s=timeout_s, bytes_max=PAGE_BYTES_MAX)
    except FetchError as error:
        return Outage(target.url, str(error), seconds=time.monotonic() - began_s)
    at_ms = time.time_ns() // 1_000_000
    text = body.decode(errors="replace")
    reason = problem(text)
    seconds = time.monotonic() - began_s
    if reason:
        return Outage(target.url, reason, seconds=seconds)
    return Page(target.url, text, at_ms, seconds)


class Scrapers:
    """Threads that scrape. They end with the process, which does not wait for them."""

    def __init__(self, timeout_s: float) -> None:
        """Take the deadline of one scrape."""
        self._timeout_s = timeout_s
        self._jobs: SimpleQueue[Target | None] = SimpleQueue()
        self._answers: SimpleQueue[Page | Outage] = SimpleQueue()
        self._threads = 0

    def patience_s(self, jobs: int) -> float:
        """Return how long a number of scrapes can take."""
        return self._timeout_s * ceil(jobs / THREADS_MAX) + PATIENCE_S

    def ask(self, targets: Sequence[Target]) -> None:
        """Scrape all these."""
        for _ in range(min(len(targets), THREADS_MAX) - self._threads):
            Thread(target=self._work, name="scraper", daemon=True).start()
            self._threads += 1
        for target in targets:
            self._jobs.put(target)

    def answer(self, patience_s: float) -> Page | Outage | None:
        """Return the next answer; None if none arrives in time."""
        try:
            return self._answers.get(timeout=patience_s) if patience_s else self._answers.get(False)
        except Empty:
            return None

    def close(self) -> None:
        """Stop the threads, each after its present scrape."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (target := self._jobs.get()) is not None:
            self._answers.put(fetch(target, self._timeout_s))


class Scraping:
    """The rounds of scrapes, and the state of each exporter."""

    def __init__(
        self,
        targets: Callable[[], Sequence[Target]],
        *,
        interval_s: float,
        timeout_s: float | None = None,
        rounds: int | None = None,
        clock: Clock,
        tally: Tally,
        while_waiting: Callable[[], None] = lambda: None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take a function that returns the present targets, and the interval."""
        self._targets = targets
        self._interval_s = interval_s
        self._timeout_s = timeout_s or min(SCRAPE_TIMEOUT_S, max(interval_s, 1.0))
        self._rounds = rounds
        self._clock = clock
        self._tally = tally
        self._while_waiting = while_waiting
        self._is_stopping = is_stopping
        self._scrapers = Scrapers(self._timeout_s)
        self._readers: dict[str, tuple[Target, PageReader]] = {}
        self._down: set[str] = set()
        self._running: set[str] = set()
        """Scrapes that are running."""

    def __iter__(self) -> Iterator[Scraped]:
        """Scrape all exporters at once, every interval, forever or for a number of rounds.

        If no exporter answers, a tick is returned instead of samples: event time advances, and the
        pipeline learns that all exporters are missing.
        """
        began_s = self._clock.now_s()
        slot = skipped = 0
        try:
            for _ in range(self._rounds) if self._rounds is not None else count():
                self._wait(began_s + slot * self._interval_s)
                if self._is_stopping():
                    return
                yield from self._round(skipped)
                passed = int((self._clock.now_s() - began_s) / self._interval_s)
                skipped = max(0, passed - slot - 1)
                slot += 1 + skipped
        finally:
            self._scrapers.close()

    def _round(self, skipped: int) -> Iterator[Scraped]:
        targets = self._present()
        urls = {target.url for target in targets}
        yield Round(tuple(urls), skipped)
        for url in sorted(urls & self._running):
            yield from self._changes(Outage(url, "the scrape before has not ended"))
        asked = sorted(urls - self._running, key=lambda url: url in self._down)
        self._scrapers.ask([self._readers[url][0] for url in asked])
        self._running.update(asked)
        is_any_up = False
        for answer in self._answers(set(asked)):
            is_any_up |= isinstance(answer, Page)
            yield from self._changes(answer)
            if isinstance(answer, Page):
                yield from self._readings(answer)
        if not is_any_up and not self._is_stopping():
            yield Tick(timestamp_ms=time.time_ns() // 1_000_000, hostname="")

    def _answers(self, wanted: set[str]) -> Iterator[Page | Outage]:
        """Return the answers of one round, and an outage for each exporter without one."""
        deadline_s = time.monotonic() + self._scrapers.patience_s(len(wanted))
        while wanted:
            answer = self._scrapers.answer(0 if self._is_stopping() else NAP_S)
            if answer is not None:
                self._running.discard(answer.url)
                if answer.url in wanted:  # otherwise its round has counted it as an outage
                    wanted.discard(answer.url)
                    yield answer
            elif self._is_stopping():
                return
            elif time.monotonic() > deadline_s:
                for url in sorted(wanted):
                    yield Outage(url, "its name could not be looked up in time")
                return
            self._while_waiting()

    def _present(self) -> Sequence[Target]:
        """Return the targets, and forget the state of removed ones."""
        targets = self._targets()
        known = {target.url: target for target in targets}
        for url in self._readers.keys() - known.keys():
            del self._readers[url]
            self._down.discard(url)
        for url, target in known.items():
            before = self._readers.get(url)
            if before is None or before[0] != target:
                reader = PageReader(where=url, default_hostname=target.host, labels=target.labels)
                self._readers[url] = (target, reader)
        return list(known.values())

    def _changes(self, answer: Page | Outage) -> Iterator[Outage | Recovery]:
        """Report exporters that failed or recovered, and remember that."""
        if isinstance(answer, Outage):
            yield replace(answer, is_first=answer.url not in self._down)
            self._down.add(answer.url)
        elif answer.url in self._down:
            self._down.discard(answer.url)
            yield Recovery(answer.url)

    def _readings(self, page: Page) -> Iterator[Reading | Scrape]:
        _, reader = self._readers[page.url]
        samples = 0
        for reading in reader.read(page.text, at_ms=page.at_ms, tally=self._tally):
            samples += 0 if isinstance(reading, Refusal) else len(reading.metrics)
            yield reading
        yield Scrape(page.url, samples, page.seconds)

    def _wait(self, until_s: float) -> None:
        while (left_s := until_s - self._clock.now_s()) > 0 and not self._is_stopping():
            self._while_waiting()
            self._clock.sleep(min(left_s, NAP_S))
