"""Sessions of users who have logged in: bounded in number, and ended by time.

The cookie holds a random key; only its hash is kept. A session ends after some time without a
request, and in any case after twelve hours. The page gets the CSRF token by `GET /api/session`,
which other sites cannot read, and sends it back with each change.
"""

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.console.login.sight import Sight

KEY_BYTES = 32
SESSIONS_MAX = 1_000
SESSIONS_A_USER_MAX = 20
IDLE_S = 2 * 3600.0
AGE_S = 12 * 3600.0


@dataclass(slots=True, kw_only=True)
class Session:
    """One user in one browser."""

    user: str | None
    read_only: bool
    properties: tuple[str, ...] = field(default=(), repr=False)
    """What the user's own connections to brokers add to those of the console."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(KEY_BYTES), repr=False)
    sight: Sight | None = None
    """What the user may see of the cluster; None for everything."""
    started_s: float = 0.0
    used_s: float = 0.0


class Sessions:
    """All sessions of a console."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def open(self, session: Session) -> str:
        """Keep a session; return the key for its cookie."""
        key = secrets.token_urlsafe(KEY_BYTES)
        session.started_s = session.used_s = self._now_s()
        with self._lock:
            self._forget_ended()
            self._make_room(session.user)
            self._kept[_hashed(key)] = session
        return key

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie, and count this as a use of it."""
        hashed = _hashed(key)
        with self._lock:
            found = self._kept.get(hashed)
            if found is None:
                return None
            if self._is_over(found):
                del self._kept[hashed]
                return None
            found.used_s = self._now_s()
            self._kept.move_to_end(hashed)
            return found

    def close(self, key: str) -> None:
        """End a session."""
        with self._lock:
            self._kept.pop(_hashed(key), None)

    def _is_over(self, session: Session) -> bool:
        now_s = self._now_s()
        return now_s - session.used_s > IDLE_S or now_s - session.started_s > AGE_S

    def _forget_ended(self) -> None:
        for hashed in [key for key, each in self._kept.items() if self._is_over(each)]:
            del self._kept[hashed]

    def _make_room(self, user: str | None) -> None:
        """End the sessions that were unused for longest, where there are too many."""
        own = [key for key, each in self._kept.items() if each.user == user]
        for hashed in own[: max(0, len(own) - SESSIONS_A_USER_MAX + 1)]:
            del self._kept[hashed]
        while len(self._kept) >= SESSIONS_MAX:
            self._kept.popitem(last=False)


def _hashed(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
