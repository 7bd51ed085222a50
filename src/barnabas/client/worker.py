"""Runs a handler for each message of a queue, several at a time.

    def handle(message: QueueMessage) -> None:
        resize(message.text)

    Worker(Queue("jobs"), handle, concurrency=8).run()   # until SIGTERM or stop()

A handler that returns has done its message. If it raises, the message is given back, or rejected
with `on_error="reject"`. The worker extends the locks of long jobs by itself.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Literal

from barnabas.client.errors import ClosedError, SettingError, UsageError
from barnabas.client.queue import Queue
from barnabas.client.queue_message import QueueMessage
from barnabas.logs import get

SLICE_S = 0.2
"""How often the worker looks after locks and timeouts."""
STOP_S = 30.0

OnError = Literal["release", "reject"]
Handler = Callable[[QueueMessage], object]

log = get("barnabas.client")


class Worker:
    """Handles the messages of one queue on threads."""

    def __init__(
        self,
        queue: Queue,
        handler: Handler,
        *,
        concurrency: int = 8,
        timeout_s: float | None = None,
        on_error: OnError = "release",
        stop_timeout_s: float = STOP_S,
    ) -> None:
        """Take the longest time of a handler, and how long `stop` waits for those that run.

        A thread cannot be ended: after `timeout_s` its message counts as failed, while it runs on.
        """
        check_worker(queue.auto_ack, concurrency, on_error)
        self._queue, self._handler = queue, handler
        self._concurrency, self._timeout_s = concurrency, timeout_s
        self._on_error, self._stop_timeout_s = on_error, stop_timeout_s
        self._stopping = threading.Event()
        self._lock = threading.Condition()
        self._running: dict[QueueMessage, float] = {}
        self._threads_busy = 0
        self.done = 0
        """How many messages a handler has done."""
        self.failed = 0
        """How many handlers raised, or took too long."""

    def run(self) -> None:
        """Work until `stop` or SIGTERM; return when all running handlers have ended."""
        with _stopped_by_sigterm(self.stop):
            pool = ThreadPoolExecutor(self._concurrency, "barnabas-worker")
            try:
                while not self._stopping.is_set():
                    self._turn(pool)
            except ClosedError:
                log.info("the queue of a worker was closed")
            finally:
                self._wind_up(pool)

    def stop(self) -> None:
        """Take no more messages; `run` returns when the running handlers have ended."""
        self._stopping.set()

    def _turn(self, pool: ThreadPoolExecutor) -> None:
        """Start handlers for what has come; extend and end those that run."""
        with self._lock:
            if self._threads_busy >= self._concurrency:
                self._lock.wait(SLICE_S)
            free = self._concurrency - self._threads_busy
        if free:
            for message in self._queue.take_batch(free, SLICE_S):
                with self._lock:
                    self._running[message] = time.monotonic()
                    self._threads_busy += 1
                pool.submit(self._handle, message)
        self._look_after()

    def _look_after(self) -> None:
        """Extend locks; give up handlers that take too long."""
        now_s = time.monotonic()
        with self._lock:
            running = list(self._running.items())
        for message, since_s in running:
            if self._timeout_s is not None and now_s > since_s + self._timeout_s:
                log.warning("a handler took too long", offset=message.offset)
                self._finish(message, is_done=False)
            else:
                message.keep()

    def _handle(self, message: QueueMessage) -> None:
        is_done = False
        try:
            self._handler(message)
            is_done = True
        except Exception:
            log.exception("a handler failed", offset=message.offset, deliveries=message.deliveries)
        finally:
            self._finish(message, is_done=is_done)
            with self._lock:
                self._threads_busy -= 1
                self._lock.notify_all()

    def _finish(self, message: QueueMessage, *, is_done: bool) -> None:
        """Answer a message, unless its time was over or the handler has answered it."""
        with self._lock:
            if self._running.pop(message, None) is None:
                return
            self.done += is_done
            self.failed += not is_done
            answer_for(message, is_done=is_done, on_error=self._on_error)

    def _wind_up(self, pool: ThreadPoolExecutor) -> None:
        deadline_s = time.monotonic() + self._stop_timeout_s
        while time.monotonic() < deadline_s:
            with self._lock:
                if not self._running:
                    break
                self._lock.wait(SLICE_S)
            self._look_after()
        pool.shutdown(wait=not self._running, cancel_futures=True)
        if not self._queue.closed:
            self._queue.flush(self._stop_timeout_s)


def answer_for(message: QueueMessage, *, is_done: bool, on_error: OnError) -> None:
    """Answer a message as its handler ended, unless the handler has answered it."""
    if message.is_answered:
        return
    if is_done:
        message.ack()
    elif on_error == "reject":
        message.reject()
    else:
        message.nack()


def check_worker(auto_ack: bool, concurrency: object, on_error: object) -> None:
    """Raise if a worker cannot work with these options."""
    if auto_ack:
        raise UsageError("a worker answers messages itself; create its queue without auto_ack")
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise SettingError(f"concurrency={concurrency!r} is not a number; write 1 or more")
    if on_error not in ("release", "reject"):
        raise SettingError(f'on_error={on_error!r} is not known; write "release" or "reject"')


@contextlib.contextmanager
def _stopped_by_sigterm(stop: Callable[[], None]) -> Iterator[None]:
    """Stop on SIGTERM inside the block; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop()

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
