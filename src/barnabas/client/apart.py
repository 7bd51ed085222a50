"""Run calls that execute callbacks on another thread than the main thread.

Python raises KeyboardInterrupt in the main thread. In a delivery callback it would lose a delivery
report, and the future of the record would never complete. So the main thread only waits while
another thread is inside librdkafka. Ctrl-C ends the wait immediately.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_apart(work: Callable[[threading.Event], T]) -> T:
    """Return the result of the work, whose event argument is set when it should end soon."""
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
    except RuntimeError:  # the interpreter is shutting down: no new threads, and no Ctrl-C
        return work(hurry)
    try:
        return done.result()
    finally:  # interrupted: the work that has started must end first
        hurry.set()
        helper.join()
