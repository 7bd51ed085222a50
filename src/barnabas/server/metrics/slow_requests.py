"""Requests that took long: a log line for each, and the last ones for /debug/slow.

A line says where the time went, as far as that is known without measuring each request: how long
the request waited behind others of its connection, how long its handler ran, and while its response
was pending how long the longest fsync took. In a cluster the rest of that time was spent waiting
for other brokers. How long the client takes to read the response is known later: the entry in
/debug/slow gets it then, and the log line does not have it.

At most ten lines are written in a second; the next one says how many were left out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sized
from typing import Protocol

from barnabas.logs import get
from barnabas.model.meters import AnsweredRequest

KEPT_MAX = 200
LINES_A_SECOND = 10
NS_PER_MS = 1_000_000
MS_A_SECOND = 1_000
SYNCS_KEPT = 64
LOOK_MS = 10
SENDING_MS_MAX = 60_000
EVENT = "slow request"

log = get("barnabas.server")

Facts = dict[str, object]
Later = Callable[[int, Callable[[], None]], object]


def never(delay_ms: int, action: Callable[[], None]) -> None:
    """Call nothing: how long sending takes is not measured."""


class Clock(Protocol):
    """The clocks of the server."""

    def monotonic_ms(self) -> int:
        """Return a clock that never jumps."""

    def wall_clock_ms(self) -> int:
        """Return the calendar's time."""


class _Sending:
    """A slow response on its way to its client."""

    __slots__ = ("_facts", "_looks", "_unsent")

    def __init__(self, facts: Facts, unsent: Sized) -> None:
        self._facts = facts
        self._unsent = unsent
        self._looks = 0

    def look(self) -> bool:
        """Look whether the client has taken everything; return whether to look again."""
        self._looks += 1
        is_over = not self._unsent or self._looks * LOOK_MS >= SENDING_MS_MAX
        if is_over:
            self._facts["sending_ms"] = (self._looks - 1) * LOOK_MS
        return not is_over


class SlowRequests:
    """The requests that took longer than the limit of their API."""

    def __init__(self, clock: Clock, *, is_alone: bool, later: Later = never) -> None:
        """Take the clocks, and what calls a function after some milliseconds."""
        self._clock = clock
        self._later = later
        self._sending: list[_Sending] = []
        self._is_alone = is_alone
        self.last: deque[Facts] = deque(maxlen=KEPT_MAX)
        self.count = 0
        self._syncs: deque[tuple[int, int]] = deque(maxlen=SYNCS_KEPT)
        """When each of the last fsyncs began and ended."""
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def note_sync(self, started_ns: int, ended_ns: int) -> None:
        """Remember an fsync."""
        self._syncs.append((started_ns, ended_ns))

    def note(self, name: str, request: AnsweredRequest, now_ns: int) -> None:
        """Record a slow request whose response is ready now."""
        caller = request.caller
        pending_ns = max(0, request.latency_ns - request.handler_ns)
        disk_ns = min(pending_ns, self._longest_sync(now_ns - pending_ns, now_ns))
        facts: Facts = {
            "api": f"{name} v{request.api_version}",
            "client_id": request.client_id,
            "principal": str(caller.principal),
            "client": caller.host,
            "listener": caller.listener.name,
            "bytes_in": request.bytes_in,
            "bytes_out": request.bytes_out,
            "partitions": request.partitions,
            "error_code": request.error_code,
            "total_ms": _ms(request.latency_ns) + request.queued_ms,
            "queue_ms": request.queued_ms,
            "handler_ms": _ms(request.handler_ns),
            "disk_ms": _ms(disk_ns),
            "peers_ms": 0.0 if self._is_alone else _ms(pending_ns - disk_ns),
        }
        self.count += 1
        kept: Facts = {"time_ms": self._clock.wall_clock_ms(), **facts}
        self.last.append(kept)
        self._write(facts)
        if len(self._sending) < KEPT_MAX:
            self._sending.append(_Sending(kept, request.unsent))
            if len(self._sending) == 1:
                self._later(1, self._look)

    def tell_left_out(self) -> None:
        """Write how many lines were left out, where no line has said so yet."""
        if self._left_out:
            log.warning("slow requests were left out of the log", left_out=self._left_out)
            self._left_out = 0

    def newest_first(self) -> Iterable[Facts]:
        """Return the last slow requests."""
        return reversed(list(self.last))

    def _look(self) -> None:
        self._sending = [each for each in self._sending if each.look()]
        if self._sending:
            self._later(LOOK_MS, self._look)

    def _write(self, facts: Facts) -> None:
        second = self._clock.monotonic_ms() // MS_A_SECOND
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_A_SECOND:
            self._left_out += 1
            return
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        more: Facts = {"left_out": left_out} if left_out else {}
        log.warning(EVENT, **facts, **more)

    def _longest_sync(self, from_ns: int, until_ns: int) -> int:
        """Return the longest time that one fsync took within a span."""
        spans = [min(ended, until_ns) - max(started, from_ns) for started, ended in self._syncs]
        return max([0, *spans])


def _ms(duration_ns: int) -> float:
    return round(duration_ns / NS_PER_MS, 1)
