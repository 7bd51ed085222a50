"""The last state of the cluster that the watcher published, for all requests.

Pages never wait for a broker: they read the last state, whose age they show. The event loop is
told of each new state, so that open pages refresh in place.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Protocol

from barnabas.console.web.event_streams import BEAT_S, KEEP_ALIVE, OPENING, frame
from barnabas.console.web.problems import ProblemError, too_many
from barnabas.monitor.states import ClusterState, Series

PAGES_MAX = 500
"""How many open pages are told of new states."""


class StateSource(Protocol):
    """What the console needs of a watcher (`barnabas.monitor`)."""

    @property
    def state(self) -> ClusterState | None:
        """The last state; None before the first collection has ended."""

    @property
    def failure(self) -> str | None:
        """Why the last collection brought nothing; None if it did not fail."""

    def look(self) -> None:
        """Collect now instead of at the end of the interval."""

    def subscribe(self, subscriber: Callable[[ClusterState], None], /) -> object:
        """Call a function after each collection, on another thread."""

    def cluster_series(self) -> Series:
        """Return the series of the cluster."""

    def broker_series(self, broker: int, /) -> Series:
        """Return the series of a broker."""

    def topic_series(self, topic: str, /) -> Series:
        """Return the series of a topic."""

    def group_series(self, group: str, /) -> Series:
        """Return the series of a group."""


class Snapshots:
    """The states of one cluster, and the pages that wait for the next."""

    def __init__(self, source: StateSource) -> None:
        self.source = source
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.Event = asyncio.Event()
        self._pages = 0
        source.subscribe(self._arrived)

    @property
    def latest(self) -> ClusterState | None:
        """The last state, if there is one."""
        return self.source.state

    def require(self) -> ClusterState:
        """Return the last state; raise if there is none yet."""
        found = self.source.state
        if found is None:
            why = self.source.failure
            raise ProblemError(
                HTTPStatus.BAD_GATEWAY,
                "no_state",
                "The first look at the cluster is not finished; try again in a moment"
                if why is None
                else f"The cluster has not answered yet: {why}",
                {"Retry-After": "1"},
            )
        return found

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the pages of this event loop of new states."""
        self._loop = loop
        self._next = asyncio.Event()

    def require_room(self) -> None:
        """Raise if too many pages are open."""
        if self._pages >= PAGES_MAX:
            raise too_many(f"{PAGES_MAX} pages are open; close some")

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield an event after each collection, the first one at once if there is a state."""
        self._pages += 1
        try:
            yield OPENING
            shown: int | None = None
            while True:
                state, coming = self.latest, self._next
                if state is not None and state.taken_ms != shown:
                    shown = state.taken_ms
                    yield frame("snapshot", {"taken_ms": shown})
                try:
                    await asyncio.wait_for(coming.wait(), BEAT_S)
                except TimeoutError:
                    yield KEEP_ALIVE
        finally:
            self._pages -= 1

    def _arrived(self, _: ClusterState) -> None:
        """Wake the pages; called on the watcher's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        last, self._next = self._next, asyncio.Event()
        last.set()
