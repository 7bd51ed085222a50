"""Admits new connections: limits on their number and on the rate at which clients connect.

A connection beyond a limit is closed at once, and a log line names the limit. At the limits of the
broker and of a listener, Kafka stops accepting instead, and clients wait without an error. At the
limit of an address Kafka closes connections, too.

If an address connects faster than its quota (`connection_creation_rate`), its connection is closed
after a pause of at most a second, as in Kafka (KIP-612). Beyond `max_connection_rate` the listeners
for clients accept no connections for a moment. Other brokers have their own listener, which has no
limits.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence

from barnabas.model.callers import Listener
from barnabas.model.settings import PerformanceSettings
from barnabas.security.buckets import Bucket
from barnabas.security.client_quotas import CONNECTION_RATE, ClientQuotas, address_of

CLOSE_DELAY_MS_MAX = 1_000
DELAYED_MAX = 1_000
"""At most this many connections wait to be closed; others are closed at once."""


class Admission:
    """Counts the connections of clients."""

    def __init__(
        self,
        settings: PerformanceSettings,
        quotas: ClientQuotas,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._quotas = quotas
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._per_host = overrides_of(settings.max_connections_per_ip_overrides)
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._delayed: set[socket.socket] = set()
        rate = settings.max_connection_rate
        self._all = Bucket(rate, monotonic_ms()) if rate else None

    @property
    def delayed(self) -> int:
        """How many connections wait to be closed."""
        return len(self._delayed)

    def refusal(self, host: str, listener: Listener, limit: int, connections: int) -> str | None:
        """Return the limit that a new connection would exceed, if there is one."""
        of_host = self._per_host.get(address_of(host), self._settings.max_connections_per_ip)
        if of_host and self._by_host[host] >= of_host:
            return "max_connections_per_ip"
        if limit and self._by_listener[listener.name] >= limit:
            return f"max_connections of listener {listener.name}"
        if connections + len(self._delayed) >= self._settings.max_connections:
            return "max_connections"
        return None

    def slow_down(self, accepted: socket.socket, host: str) -> str | None:
        """Close a connection after a pause if its address is over its rate; return that limit."""
        if not self._quotas.limits_connections:
            return None
        now_ms = self._monotonic_ms()
        bucket = self._quotas.connection_bucket(host, now_ms)
        if bucket is None:
            return None
        missing = 1 - bucket.room(now_ms)
        if missing <= 0:
            bucket.use(1, now_ms)
            return None
        delay_ms = min(CLOSE_DELAY_MS_MAX, int(missing * 1000 / bucket.rate) + 1)
        if len(self._delayed) < DELAYED_MAX:
            self._delayed.add(accepted)
            self._loop.call_later(delay_ms / 1000, self._close, accepted)
        else:
            accepted.close()
        return CONNECTION_RATE

    def pause_ms(self) -> int:
        """Count a connection; return for how long no other should be accepted."""
        return 0 if self._all is None else self._all.use(1, self._monotonic_ms())

    def enter(self, host: str, listener: Listener) -> None:
        """Count a client that has connected."""
        self._by_host[host] += 1
        self._by_listener[listener.name] += 1

    def leave(self, host: str, listener: Listener) -> None:
        """Stop counting it."""
        for counter, key in ((self._by_host, host), (self._by_listener, listener.name)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]

    def close(self) -> None:
        """Close the connections that wait to be closed."""
        for accepted in list(self._delayed):
            self._close(accepted)

    def _close(self, accepted: socket.socket) -> None:
        if accepted in self._delayed:
            self._delayed.remove(accepted)
            accepted.close()


def overrides_of(texts: Sequence[str]) -> dict[str, int]:
    """Return limits by address, from texts such as `10.0.0.1:100`."""
    split = (text.rpartition(":") for text in texts)
    return {address_of(host.strip("[]")): int(limit) for host, _, limit in split}
