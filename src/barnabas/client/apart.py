"""Work that runs callbacks, kept off the main thread.

Python raises KeyboardInterrupt in whatever the main thread is doing. In the middle of a delivery
callback that would cost a delivery report, and its future would never end. So the main thread
only waits, while a thread beside it is inside librdkafka. Ctrl-C ends the wait at once.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_apart(work: Callable[[threading.Event], T]) -> T:
    """Return what the work returns. The event it is given is set when it shall hurry up."""
    hurry = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return work(hurry)
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work(hurry))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)

    helper = threading.Thread(target=run, name="barnabas-flush", daemon=True)
    try:
        helper.start()
    except RuntimeError:  # the interpreter is shutting down: no more threads, and no Ctrl-C
        return work(hurry)
    try:
        return done.result()
    finally:  # interrupted: what is begun comes to its end first
        hurry.set()
        helper.join()
