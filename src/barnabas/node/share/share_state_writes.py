"""Keeps the writes of each share partition in order: one at a time, the next ones joined.

The state of a share partition is the sum of its writes in their order. Those that come in one turn
of the event loop go as one write, which holds what they hold together, and share its answer. While
it is on its way, later ones wait. So a coordinator that answers slowly gets fewer and larger
writes.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from barnabas.model.pending import Pending
from barnabas.model.share_state import UNKNOWN_OFFSET, SharePartitionKey, StateUpdate
from barnabas.share.state_batches import merged

Send = Callable[[SharePartitionKey, StateUpdate, int], Pending[None]]
"""Sends a write that is to be answered by a deadline."""


class Waiting(NamedTuple):
    """A write, when it is to be answered, and its answer."""

    update: StateUpdate
    deadline_ms: int
    answer: Pending[None]


class ShareStateWrites:
    """The writes of all share partitions that one part of the broker sends."""

    def __init__(self, send: Send, wake: Callable[[], None]) -> None:
        self._send = send
        self._wake = wake
        self._waiting: dict[SharePartitionKey, deque[Waiting]] = {}
        """The writes that were not sent yet, for each share partition that has any on its way."""
        self._ready: list[SharePartitionKey] = []
        """The share partitions of which no write is on its way."""

    @property
    def are_ready(self) -> bool:
        """Whether there are writes that can be sent."""
        return bool(self._ready)

    def write(self, key: SharePartitionKey, update: StateUpdate, deadline_ms: int) -> Pending[None]:
        """Have a write sent, at the end of the turn, after those before it."""
        one = Waiting(update, deadline_ms, Pending())
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque([one])
            self._get_ready(key)
        else:
            queue.append(one)
        return one.answer

    def send_ready(self) -> None:
        """Send what waits for share partitions of which no write is on its way."""
        ready, self._ready = self._ready, []
        for key in ready:
            self._begin(key, self._waiting[key])

    def _get_ready(self, key: SharePartitionKey) -> None:
        self._ready.append(key)
        self._wake()

    def _begin(self, key: SharePartitionKey, queue: deque[Waiting]) -> None:
        parts = [queue.popleft()]
        update = parts[0].update
        while queue and can_join(update, queue[0].update):
            parts.append(queue.popleft())
            update = joined(update, parts[-1].update)

        def done(_: None) -> None:
            self._go_on(key)
            for part in parts:
                part.answer.complete(None)

        def failed(error: Exception) -> None:
            self._go_on(key)
            for part in parts:
                part.answer.fail(error)

        self._send(key, update, parts[0].deadline_ms).when_done(done, failed)

    def _go_on(self, key: SharePartitionKey) -> None:
        """Send what waits behind a write that is over."""
        if self._waiting[key]:
            self._get_ready(key)
        else:
            del self._waiting[key]


def can_join(first: StateUpdate, second: StateUpdate) -> bool:
    """Tell whether two writes come from the same leader, and change the same state."""
    return first[:2] == second[:2]


def joined(first: StateUpdate, second: StateUpdate) -> StateUpdate:
    """Return the write that changes what two writes change, one after the other."""
    start_offset = second.start_offset
    if start_offset == UNKNOWN_OFFSET:
        start_offset = first.start_offset
    batches = merged(first.batches, second.batches, 0)
    shipment = second.shipment or first.shipment
    return second._replace(start_offset=start_offset, batches=batches, shipment=shipment)
