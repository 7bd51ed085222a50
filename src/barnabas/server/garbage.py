"""Sets the garbage collector's thresholds while a broker runs, and restores them afterwards.

The thresholds belong to the process, which may run other code and several brokers. The first
broker to start stores the host program's thresholds, and the last one to stop restores them.
"""

import gc
import threading

LOADING = (50_000, 20, 100)
"""Thresholds while logs are opened, which creates many objects and no garbage: repeated collections
would take as long as opening the logs."""
SERVING = (1_000, 2, 300_000)
"""Thresholds while clients are served. A collection stops the event loop for up to two microseconds
for each object that it examines, a thousand objects or a few thousand. Requests, connections and
topics leave no cycles behind, so a full collection is hardly ever due."""


class Shared:
    """The state that all brokers of this process share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.brokers = 0
        self.thresholds = gc.get_threshold()
        """The thresholds of the host program."""
        self.may_freeze = True
        """Whether the host program has frozen nothing: `gc.unfreeze` applies to all objects."""


_shared = Shared()


class GarbageSettings:
    """One broker's use of the settings, from its start to its stop."""

    def __init__(self) -> None:
        self._holds = False

    def raise_gc_threshold(self) -> None:
        """Raise the thresholds while logs are loaded."""
        with _shared.lock:
            if _shared.brokers == 0:
                _shared.thresholds = gc.get_threshold()
                _shared.may_freeze = gc.get_freeze_count() == 0
                gc.set_threshold(*LOADING)
            _shared.brokers += 1
            self._holds = True

    def freeze_loaded_objects(self) -> None:
        """Exclude loaded objects from garbage collection, and keep later collections short.

        Nothing is collected here: that would stop the loop, and nearly everything is in use.
        """
        with _shared.lock:
            if _shared.may_freeze:
                gc.freeze()
            if gc.get_threshold() == LOADING:
                gc.set_threshold(*SERVING)

    def restore(self) -> None:
        """Include excluded objects again, such as a stopped broker's files.

        Thresholds that the host program changed in the meantime stay as they are.
        """
        with _shared.lock:
            if not self._holds:
                return
            self._holds = False
            _shared.brokers -= 1
            if _shared.may_freeze:
                gc.unfreeze()
            if _shared.brokers == 0 and gc.get_threshold() in {LOADING, SERVING}:
                gc.set_threshold(*_shared.thresholds)
