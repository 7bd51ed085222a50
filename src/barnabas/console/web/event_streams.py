"""Server-sent events: a bounded queue between the thread that reads and the page that shows.

    thread: channel.put("record", {...}, id="0:17")       waits while the page is behind
    thread: channel.offer("record", {...}, id="0:17")     returns False instead of waiting
    page:   async for bytes in channel.frames()

A page that goes away closes its channel. `put` then returns False, which ends the thread's work.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from barnabas.console.web.json_answers import encode
from barnabas.console.web.problems import too_many

QUEUED_MAX = 64
QUEUED_BYTES_MAX = 4 << 20
"""So much waits for a slow page; one event that is larger waits alone."""
BEAT_S = 15.0
WAIT_S = 0.25
KEEP_ALIVE = b": still here\n\n"
RETRY_MS = 2000
OPENING = b"retry: %d\n\n" % RETRY_MS


class EventChannel:
    """One stream of events from a thread to a page."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        queued_max: int = QUEUED_MAX,
        queued_bytes_max: int = QUEUED_BYTES_MAX,
    ) -> None:
        self._loop = loop
        self._queued_max = queued_max
        self._queued_bytes_max = queued_bytes_max
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._room = threading.Condition()
        self._wake = asyncio.Event()
        self._closed = threading.Event()
        self._is_ended = False
        self.failure: str | None = None
        """Why the thread's work failed."""

    @property
    def is_closed(self) -> bool:
        """Whether the page has gone away."""
        return self._closed.is_set()

    def put(self, event: str, data: object, identity: str | None = None) -> bool:
        """Queue an event, and wait for room; return False if the page has gone away."""
        return self.put_bytes(frame(event, data, identity))

    def put_bytes(self, content: bytes) -> bool:
        """Queue a part of a file, and wait for room; return False if the page has gone away."""
        while not self._closed.is_set():
            with self._room:
                if self._room.wait_for(lambda: self._has_room(content), WAIT_S):
                    self._append(content)
                    return True
        return False

    def offer(self, event: str, data: object, identity: str | None = None) -> bool:
        """Queue an event if there is room; return whether there was."""
        content = frame(event, data, identity)
        with self._room:
            if self._closed.is_set() or not self._has_room(content):
                return False
            self._append(content)
        return True

    def fail(self, reason: str) -> None:
        """Say why no more follows."""
        self.failure = reason

    def end(self) -> None:
        """Say that no event follows."""
        self._is_ended = True
        self._signal()

    def close(self) -> None:
        """Say that the page has gone away."""
        self._closed.set()

    def wait_closed(self, seconds: float) -> bool:
        """Wait in the thread; return whether the page has gone away."""
        return self._closed.wait(seconds)

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Yield the events as bytes until the end, with a comment while there are none."""
        yield OPENING
        async with aclosing(self.contents()) as contents:
            async for content in contents:
                yield content or KEEP_ALIVE
        if self.failure is not None:
            yield frame("failed", {"error": self.failure})

    async def contents(self) -> AsyncGenerator[bytes, None]:
        """Yield what was queued until the end; nothing (b"") when a while passes without."""
        try:
            while True:
                while self._queue:
                    yield self._take()
                if self._is_ended and not self._queue:
                    return
                self._wake.clear()
                if self._queue or self._is_ended:
                    continue
                try:
                    await asyncio.wait_for(self._wake.wait(), BEAT_S)
                except TimeoutError:
                    yield b""
        finally:
            self.close()

    def _has_room(self, content: bytes) -> bool:
        return not self._queue or (
            len(self._queue) < self._queued_max
            and self._queued_bytes + len(content) <= self._queued_bytes_max
        )

    def _append(self, content: bytes) -> None:
        self._queue.append(content)
        self._queued_bytes += len(content)
        self._signal()

    def _take(self) -> bytes:
        with self._room:
            content = self._queue.popleft()
            self._queued_bytes -= len(content)
            self._room.notify()
        return content

    def _signal(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop has ended, and with it every page
            self._closed.set()


class StreamPlaces:
    """Counts the open streams of all sessions, and of each."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def take(self, session: str) -> None:
        """Count one more stream; raise if there are too many."""
        with self._lock:
            if self._open.total() >= self._most:
                raise too_many(f"{self._most} searches and tails are open; close some")
            if self._open[session] >= self._most_each:
                raise too_many(f"You have {self._most_each} searches and tails open; close some")
            self._open[session] += 1

    def give_back(self, session: str) -> None:
        """Count one less."""
        with self._lock:
            self._open[session] -= 1
            if self._open[session] <= 0:
                del self._open[session]


def frame(event: str, data: object, identity: str | None = None) -> bytes:
    """Return one event. JSON has no line breaks, so its data is one line."""
    head = b"" if identity is None else b"id: " + identity.encode() + b"\n"
    return head + b"event: " + event.encode() + b"\ndata: " + encode(data) + b"\n\n"


def event_stream(
    frames: AsyncIterator[bytes], after: BackgroundTask | None = None
) -> StreamingResponse:
    """Return the answer that sends events; proxies must not collect them."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        frames, headers=headers, media_type="text/event-stream", background=after
    )
