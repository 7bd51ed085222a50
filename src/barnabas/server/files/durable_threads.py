"""Threads for syncs that no producer waits for: file changes, and logs that are due for a flush.

Requests that name the same folders wait together, and each folder is synced once for all of them.
Deleting several topics within one event needs two syncs.

Only a few finished requests are reported in one event of the loop, since each may then rename files
or ask for the next sync.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from queue import SimpleQueue

from barnabas.effects import MakeDurable
from barnabas.logs import get
from barnabas.model.errors import SyncFailedError
from barnabas.model.ports import Disk
from barnabas.storage.changes import Sync

THREADS = 4
REPORTED_AT_ONCE = 2
TRY_AGAIN_S = 1.0

log = get("barnabas.server")

Done = Callable[[list[MakeDurable]], None]


class DurableThreads:
    """A few threads, each with the requests for the same folders at a time."""

    def __init__(
        self,
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        done: Done,
        stop_at_once: Callable[[BaseException], None],
    ) -> None:
        self._disk = disk
        self._loop = loop
        self._done = done
        self._stop_at_once = stop_at_once
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, list[MakeDurable]] = {}
        self._gathered: list[Hashable] = []
        self._queue: SimpleQueue[Hashable | None] = SimpleQueue()
        self._finished: deque[MakeDurable] = deque()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, request: MakeDurable) -> None:
        """Have files and folders synced; `done` is called on the loop."""
        sync = request.sync
        if not (sync.files or sync.folders):
            self._finished.append(request)
            self._loop.call_soon(self._report)
            return
        key: Hashable = sync.folders or id(request)
        with self._lock:
            waiting = self._waiting.setdefault(key, [])
            waiting.append(request)
        if len(waiting) == 1:
            if not self._gathered:
                self._loop.call_soon(self._hand_over)
            self._gathered.append(key)

    def close(self) -> None:
        """Finish the submitted requests."""
        if self._gathered:
            self._hand_over()
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _hand_over(self) -> None:
        """Pass the requests of one turn of the loop to the threads; start them if necessary."""
        if not self._threads and not self._closed:
            self._threads = [
                threading.Thread(target=self._run, name=f"durable-{number}", daemon=True)
                for number in range(THREADS)
            ]
            for thread in self._threads:
                thread.start()
        gathered, self._gathered = self._gathered, []
        for key in gathered:
            self._queue.put(key)

    def _run(self) -> None:
        while self._take():
            pass

    def _take(self) -> bool:
        """Carry out the next requests; return whether there may be others."""
        key = self._queue.get()
        if key is None:
            return False
        with self._lock:
            requests = self._waiting.pop(key, [])
        try:
            together(requests).carry_out(self._disk)
        except SyncFailedError as error:
            self._stop_at_once(error)
        except OSError as error:
            # Nothing was synced, for instance because too many files are open.
            log.warning("cannot sync a change yet", problem=str(error))
            return self._call(self._try_again, requests)
        self._finished.extend(requests)
        return self._call(self._report)

    def _call(self, callback: Callable[..., None], *arguments: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return False  # the loop is closed: the broker is stopping
        return True

    def _try_again(self, requests: list[MakeDurable]) -> None:
        for request in requests:
            self._loop.call_later(TRY_AGAIN_S, self.submit, request)

    def _report(self) -> None:
        finished: list[MakeDurable] = []
        while self._finished and len(finished) < REPORTED_AT_ONCE:
            finished.append(self._finished.popleft())
        if finished:  # otherwise an earlier wake-up reported them
            self._done(finished)
        if self._finished:
            self._loop.call_soon(self._report)


def together(requests: list[MakeDurable]) -> Sync:
    """Return the files and folders of several requests, each folder once."""
    files = tuple(file for request in requests for file in request.sync.files)
    folders = dict.fromkeys(folder for request in requests for folder in request.sync.folders)
    return Sync(files, tuple(folders))
