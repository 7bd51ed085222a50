"""Threads that sync files: a queue in, a wake-up of the loop out.

A `ThreadPoolExecutor` costs more than a fast disk needs for the sync itself. The syncs of one turn
of the loop are passed to the threads at its end, in one share for each thread, and each share is
reported as a whole: each wake-up of a thread, or of the loop by a thread, takes the interpreter
lock from the loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from barnabas.effects import Flush


class SyncThreads:
    """A few threads, each syncing one log at a time."""

    def __init__(
        self,
        count: int,
        loop: asyncio.AbstractEventLoop,
        sync: Callable[[Flush], None],
        done: Callable[[list[Flush]], None],
    ) -> None:
        self._loop = loop
        self._sync = sync
        self._done = done
        self._gathered: list[Flush] = []
        self._queue: SimpleQueue[list[Flush] | None] = SimpleQueue()
        self._finished: deque[Flush] = deque()
        self._threads = [
            threading.Thread(target=self._run, name=f"sync-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, flush: Flush) -> None:
        """Have a log synced; `done` is called on the loop."""
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append(flush)

    def close(self) -> None:
        """Finish the submitted syncs."""
        self._hand_over()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _hand_over(self) -> None:
        """Divide the syncs of one turn of the loop among the threads."""
        gathered, self._gathered = self._gathered, []
        count = min(len(gathered), len(self._threads))
        for number in range(count):
            self._queue.put(gathered[number::count])

    def _run(self) -> None:
        while self._take_share():
            pass

    def _take_share(self) -> bool:
        """Sync the next share; return whether there may be others.

        It is a separate function, so that a waiting thread keeps no reference to its last share:
        that would keep the files of a deleted topic open until the next sync.
        """
        share = self._queue.get()
        if share is None:
            return False
        for flush in share:
            self._sync(flush)
        self._finished.extend(share)
        try:
            self._loop.call_soon_threadsafe(self._report)
        except RuntimeError:
            return False  # the loop is closed: the broker is stopping
        return True

    def _report(self) -> None:
        finished = []
        while self._finished:
            finished.append(self._finished.popleft())
        if finished:  # otherwise an earlier wake-up reported them
            self._done(finished)
