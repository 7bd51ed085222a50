"""Collects the state of a cluster at an interval, on a thread, and publishes each state.

    with Watcher(WatchSettings(properties={"bootstrap.servers": "127.0.0.1:9092"})) as watcher:
        state = watcher.wait(timeout_s=30)

Nothing that brokers do stops a watcher: when none answers, the last state stays, with the verdict
unavailable, until one answers again.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from barnabas import logs
from barnabas.monitor.cluster_collecting import ANSWER_TIMEOUT_S, Collector
from barnabas.monitor.observing import Observer
from barnabas.monitor.states import ClusterState, Series
from barnabas.wire.wire_failures import LinkError

INTERVAL_S = 10.0
STOP_PATIENCE_S = 30.0

Subscriber = Callable[[ClusterState], None]
_logger = logs.get("monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """Which cluster to watch, and how often."""

    properties: Mapping[str, object] = field(repr=False)
    """Librdkafka's, with bootstrap.servers."""
    interval_s: float = INTERVAL_S
    """From the start of one collection to the start of the next."""
    metrics: Sequence[str] = ()
    """Where brokers serve /metrics: [ID=]HOST:PORT."""
    client_id: str = "barnabas-monitor"
    answer_timeout_s: float = ANSWER_TIMEOUT_S


class Watcher:
    """Watches one cluster from `start` to `stop`."""

    def __init__(self, settings: WatchSettings) -> None:
        """Raise `LinkError` if an address or a property cannot be used."""
        self.settings = settings
        self._collector = Collector(
            settings.properties, settings.metrics, settings.client_id, settings.answer_timeout_s
        )
        self._observer = Observer(settings.interval_s)
        self._changed = threading.Condition()
        self._collections = 0
        self._failure: str | None = None
        self._subscribers: list[Subscriber] = []
        self._wanted = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Begin to collect."""
        assert self._thread is None, "this watcher runs"
        self._thread = threading.Thread(target=self._run, name="barnabas-watcher", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread, after the request that it waits for; do nothing if it does not run."""
        self._stopping = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(STOP_PATIENCE_S)
            self._thread = None

    @property
    def state(self) -> ClusterState | None:
        """The newest state; None before the first."""
        return self._observer.state

    @property
    def failure(self) -> str | None:
        """Why the last collection brought nothing; None if it did not fail."""
        return self._failure

    @property
    def collections(self) -> int:
        """How many collections have ended, with or without a result."""
        return self._collections

    def wait(self, timeout_s: float, after: int = 0) -> ClusterState:
        """Return the state once more than `after` collections have ended.

        Raise `LinkError` if no collection ended in time, or none has ever brought anything.
        """
        with self._changed:
            ended = self._changed.wait_for(lambda: self._collections > after, timeout_s)
            state, failure = self.state, self._failure
        if not ended:
            raise LinkError(f"The cluster was not read within {timeout_s:.0f} s; try again")
        if state is None:
            raise LinkError(failure or "The cluster could not be read; look at the log")
        return state

    def look(self) -> None:
        """Collect now; the interval begins anew."""
        self._wanted.set()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call a function with each new state, on the watcher's thread; return how to end that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def cluster_series(self) -> Series:
        """Return the series of the cluster."""
        with self._changed:
            return self._observer.charts.cluster()

    def broker_series(self, broker: int) -> Series:
        """Return the series of one broker, from its /metrics."""
        with self._changed:
            return self._observer.charts.broker(broker)

    def topic_series(self, topic: str) -> Series:
        """Return how fast records arrived in one topic."""
        state = self.state
        found = None if state is None else state.topics.get(topic)
        places = [] if found is None else [(topic, each.number) for each in found.partitions]
        with self._changed:
            return self._observer.charts.topic(places)

    def group_series(self, group: str) -> Series:
        """Return the lag of one group, in records and in seconds."""
        with self._changed:
            return self._observer.charts.group(self._observer.group_track(group))

    def _run(self) -> None:
        try:
            while not self._stopping:
                began_s = time.monotonic()
                self._wanted.clear()
                self._collect()
                left_s = self.settings.interval_s - (time.monotonic() - began_s)
                self._wanted.wait(max(0.0, left_s))
        finally:
            self._collector.close()

    def _collect(self) -> None:
        try:
            collected = self._collector.collect()
            collected = self._collector.with_times(collected, self._observer.unread(collected))
            with self._changed:
                state = self._observer.observe(collected)
            self._end(None, state)
        except (LinkError, OSError) as error:
            self._end(str(error), self._observer.failed(str(error)))
        except Exception as error:
            _logger.exception("collection failed")
            reason = f"the collection failed: {type(error).__name__}: {error}"
            self._end(reason, self._observer.failed(reason))

    def _end(self, failure: str | None, state: ClusterState | None) -> None:
        with self._changed:
            self._failure = failure
            self._collections += 1
            self._changed.notify_all()
        for subscriber in list(self._subscribers) if state is not None else ():
            assert state is not None
            try:
                subscriber(state)
            except Exception:
                _logger.exception("a subscriber failed")
