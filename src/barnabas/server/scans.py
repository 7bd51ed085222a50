"""Runs scans: one step in each turn of the event loop, and long calls on threads.

Other events run between two steps. Each lane runs a few scans at a time, and one of each owner: a
client's scan waits behind its earlier scans, and the clients take turns. So memory is bounded, and
a client that asks for much delays only itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from barnabas.effects import Scan
from barnabas.model.steps import Call

ACTIVE_MAX = 4
"""How many scans of a lane run at a time."""
THREADS = 2

Resume = Callable[[], Call | None]


class Lane:
    """Scans of one kind: the owners that wait, in order, and the owners whose scan runs."""

    def __init__(self) -> None:
        self.waiting: dict[str, deque[Scan]] = {}
        self.active: set[str] = set()

    def put(self, scan: Scan) -> None:
        """Queue a scan behind others of its owner."""
        self.waiting.setdefault(scan.owner, deque()).append(scan)

    def take(self) -> Scan | None:
        """Return the next scan that may begin."""
        if len(self.active) >= ACTIVE_MAX:
            return None
        owner = next((each for each in self.waiting if each not in self.active), None)
        if owner is None:
            return None
        scans = self.waiting.pop(owner)
        scan = scans.popleft()
        if scans:
            self.waiting[owner] = scans  # behind the other owners
        self.active.add(owner)
        return scan


class Scans:
    """All scans that wait or run."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run_event: Callable[..., None]) -> None:
        self._loop = loop
        self._run_event = run_event
        self._lanes: dict[str, Lane] = {}
        self._ready: deque[tuple[Scan, Resume]] = deque()
        self._armed = False
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="scan")

    def submit(self, scan: Scan) -> None:
        """Run a scan when it is its turn."""
        self._lanes.setdefault(scan.lane, Lane()).put(scan)
        self._begin(scan.lane)

    def close(self) -> None:
        """Abandon all scans: the broker stops."""
        self._ready.clear()
        self._lanes.clear()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _begin(self, name: str) -> None:
        while (scan := self._lanes[name].take()) is not None:
            self._go_on(scan, None)

    def _go_on(self, scan: Scan, call: Call | None) -> None:
        if call is None:
            self._get_ready(scan, partial(scan.steps.send, None))
        else:
            with suppress(RuntimeError):  # the broker is stopping
                self._threads.submit(self._make, scan, call)

    def _make(self, scan: Scan, call: Call) -> None:
        """Make a call on a thread, and continue the scan on the event loop."""
        resume: Resume
        try:
            resume = partial(scan.steps.send, call())
        except Exception as error:  # noqa: BLE001 - it belongs to the scan, which asked for the call
            resume = partial(scan.steps.throw, error)
        with suppress(RuntimeError):  # the loop is closed: the broker is stopping
            self._loop.call_soon_threadsafe(self._get_ready, scan, resume)

    def _get_ready(self, scan: Scan, resume: Resume) -> None:
        self._ready.append((scan, resume))
        self._arm()

    def _arm(self) -> None:
        if self._ready and not self._armed:
            self._armed = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._armed = False
        if self._ready:
            self._run_event(self._step, *self._ready.popleft())
        self._arm()

    def _step(self, scan: Scan, resume: Resume) -> None:
        going_on = False
        try:
            call = resume()
            going_on = True
        except StopIteration:
            pass
        finally:  # also after a scan that failed
            if not going_on and scan.lane in self._lanes:
                self._lanes[scan.lane].active.discard(scan.owner)
                self._begin(scan.lane)
        if going_on:
            self._go_on(scan, call)
