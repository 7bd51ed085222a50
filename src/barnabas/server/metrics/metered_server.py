"""A server that measures how busy its event loop is, and how long its events take.

It takes the place of `Server` where metrics are served. Every ten seconds it has rates worked out.
"""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from barnabas.node.node import Node
from barnabas.server.metrics.broker_meters import BrokerMeters
from barnabas.server.server import NS_PER_MS, Server

STALL_NS = 100 * NS_PER_MS
TURN_MS = 10_000
TURNS_A_MINUTE = 6
MS_PER_S = 1_000


class Rates(NamedTuple):
    """What happened per second in the last minute."""

    appended: float = 0.0
    """Metadata records that this node appended as the leader of the quorum."""
    fetched: float = 0.0
    """Metadata records that it fetched."""
    commit_ms: float = 0.0
    """How long an append took until it was committed, on average."""


class _Sample(NamedTuple):
    """Numbers that grow, at one moment."""

    now_ms: int
    appended: int
    fetched: int
    commits: int
    commit_ms: int


class MeteredServer(Server):
    """A server whose events are timed."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop, meters: BrokerMeters) -> None:
        self.busy_ns = 0
        self.stalls = 0
        """Events that took longer than 100 ms."""
        self._longest_ns = [0, 0]
        """The longest event of this minute, and of the one before."""
        self.idle = 1.0
        """The share of the last ten seconds in which the loop waited for something to do."""
        self.rates = Rates()
        super().__init__(node, loop, meters, meters.note_sync)
        self.meters = meters
        self._rate_turns = 0
        self._turned_ms = self.monotonic_ms()
        self._busy_then_ns = 0
        self._end_then = 0
        self._appended = self._fetched = 0
        self._samples: list[_Sample] = []

    @property
    def longest_event_s(self) -> float:
        """The longest event of the last one to two minutes."""
        return max(self._longest_ns) / 1e9

    def run_event(self, callback: Callable[..., None], *arguments: object) -> None:
        """Run a callback as an event, and count the time that it takes."""
        started_ns = time.monotonic_ns()
        super().run_event(callback, *arguments)
        took_ns = time.monotonic_ns() - started_ns
        self.busy_ns += took_ns
        if took_ns > self._longest_ns[0]:
            self._longest_ns[0] = took_ns
            if took_ns > STALL_NS:
                self.stalls += 1
        elif took_ns > STALL_NS:
            self.stalls += 1

    def begin_turns(self) -> None:
        """Have rates worked out from now on."""
        self._turned_ms = self.monotonic_ms()
        self._end_then = self.node.quorum.raft.end_offset
        self.node.timers.after(TURN_MS, self._turn)

    def _turn(self) -> None:
        self.node.timers.after(TURN_MS, self._turn)
        now_ms = self.monotonic_ms()
        passed_ms = max(1, now_ms - self._turned_ms)
        busy_ms = (self.busy_ns - self._busy_then_ns) / NS_PER_MS
        self.idle = min(1.0, max(0.0, 1.0 - busy_ms / passed_ms))
        self._turned_ms, self._busy_then_ns = now_ms, self.busy_ns
        self._rate_turns += 1
        is_new_minute = self._rate_turns % TURNS_A_MINUTE == 0
        if is_new_minute:
            self._longest_ns = [0, self._longest_ns[0]]
        self._sample_quorum(now_ms)
        self.meters.turn(passed_ms, is_new_minute=is_new_minute)

    def _sample_quorum(self, now_ms: int) -> None:
        elections = self.node.quorum.raft.elections
        end_offset = self.node.quorum.raft.end_offset
        grown = max(0, end_offset - self._end_then)
        self._end_then = end_offset
        if elections.is_leader:
            self._appended += grown
        else:
            self._fetched += grown
        times = elections.commit_times
        now = _Sample(now_ms, self._appended, self._fetched, times.count, times.total_ms)
        self._samples = [*self._samples[-TURNS_A_MINUTE:], now]
        then = self._samples[0]
        seconds = max(1, now.now_ms - then.now_ms) / MS_PER_S
        commits = now.commits - then.commits
        self.rates = Rates(
            (now.appended - then.appended) / seconds,
            (now.fetched - then.fetched) / seconds,
            (now.commit_ms - then.commit_ms) / commits if commits else 0.0,
        )
