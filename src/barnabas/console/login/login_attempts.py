"""Slows guesses of passwords down, and stops them after some failures.

A failure counts for a user and an address. After ten in five minutes further attempts are refused
without a look at the password, until the oldest failure is five minutes ago.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

WINDOW_S = 300.0
FAILURES_MAX = 10
PAIRS_MAX = 10_000
DELAY_S = 1.0
"""How long the answer to a failed login waits."""

Who = tuple[str, str]


class LoginAttempts:
    """The failures of the last minutes."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._failures: OrderedDict[Who, deque[float]] = OrderedDict()

    def may_try(self, who: Who) -> bool:
        """Return whether a user may try again from an address."""
        with self._lock:
            return len(self._recent(who)) < FAILURES_MAX

    def failed(self, who: Who) -> None:
        """Count a failure."""
        with self._lock:
            recent = self._recent(who)
            recent.append(self._now_s())
            self._failures[who] = recent
            self._failures.move_to_end(who)
            while len(self._failures) > PAIRS_MAX:
                self._failures.popitem(last=False)

    def succeeded(self, who: Who) -> None:
        """Forget the failures of a user who knew the password in the end."""
        with self._lock:
            self._failures.pop(who, None)

    def _recent(self, who: Who) -> deque[float]:
        found = self._failures.get(who, deque(maxlen=FAILURES_MAX))
        while found and self._now_s() - found[0] > WINDOW_S:
            found.popleft()
        return found
