"""What the exporter serves: metrics, rendered at most once for each collection, and health.

When no broker has answered for three intervals, the series of the cluster are left out: a lag that
never changes would look like a calm cluster.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from barnabas.exporter.cluster_series import families
from barnabas.exporter.exporter_process import process_families
from barnabas.exporter.series_text import COUNTER, GAUGE, Family, page
from barnabas.monitor.states import ClusterState
from barnabas.monitor.watcher import Watcher

STALE_INTERVALS = 3


class Wellness(NamedTuple):
    """Whether the exporter has recent values."""

    verdict: str
    reasons: Sequence[str]

    @property
    def is_well(self) -> bool:
        """Whether it can be scraped for truth."""
        return self.verdict == "ready"


class ExporterPage:
    """The page of one watcher."""

    def __init__(
        self, watcher: Watcher, cluster_name: str = "", more: Callable[[], str] = lambda: ""
    ) -> None:
        """Take the value of the label cluster_name (default: the cluster's id), and more text."""
        self._watcher = watcher
        self._cluster_name = cluster_name
        self._more = more
        self._lock = threading.Lock()
        self._made_of: ClusterState | None = None
        self._cluster = ""
        self._collected_s: float | None = None
        watcher.subscribe(self._note)

    def text(self) -> str:
        """Return the page of the last collection."""
        state, is_stale = self._watcher.state, self._is_stale()
        own = page([*self._own(state, is_stale=is_stale), *process_families()])
        if state is None or is_stale:
            return own
        with self._lock:
            if state is not self._made_of:
                name = self._cluster_name or state.overview.cluster_id
                self._cluster, self._made_of = page(families(state, name)), state
            return self._cluster + self._more() + own

    def wellness(self) -> Wellness:
        """Return whether values are recent, and if not, why."""
        failure = self._watcher.failure
        if self._collected_s is None:
            return Wellness("starting", [failure or "the first collection has not ended"])
        if self._is_stale():
            return Wellness("stale", [failure or "no collection has ended for three intervals"])
        return Wellness("ready", [] if failure is None else [failure])

    def _note(self, state: ClusterState) -> None:
        del state
        if self._watcher.failure is None:
            self._collected_s = time.monotonic()

    def _is_stale(self) -> bool:
        if self._collected_s is None:
            return True
        patience_s = STALE_INTERVALS * self._watcher.settings.interval_s
        return time.monotonic() - self._collected_s > patience_s

    def _own(self, state: ClusterState | None, *, is_stale: bool) -> Iterator[Family]:
        yield Family(
            "barnabas_exporter_up",
            GAUGE,
            "1 if brokers answered within the last three intervals.",
            lines=[((), int(not is_stale))],
        )
        yield Family(
            "barnabas_exporter_collections_total",
            COUNTER,
            "Collections that ended, with or without a result.",
            lines=[((), self._watcher.collections)],
        )
        if state is None:
            return
        yield Family(
            "barnabas_exporter_collection_seconds",
            GAUGE,
            "How long the last collection took.",
            lines=[((), state.took_ms / 1000)],
        )
        yield Family(
            "barnabas_exporter_last_collection_timestamp_seconds",
            GAUGE,
            "When the values were collected.",
            lines=[((), state.taken_ms / 1000)],
        )
        yield Family(
            "barnabas_exporter_troubles",
            GAUGE,
            "What the last collection could not read; /health has the reasons.",
            lines=[((), len(state.troubles))],
        )
