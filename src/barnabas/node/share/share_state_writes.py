"""Keeps the writes of each share partition in order: one at a time, the next ones joined.

The state of a share partition is the sum of its writes in their order. While one is on its way,
later ones wait. They follow as one write, which holds what they hold together, and share its
answer. So a coordinator that answers slowly gets fewer and larger writes.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from barnabas.model.pending import Pending
from barnabas.model.share_state import UNKNOWN_OFFSET, SharePartitionKey, StateUpdate
from barnabas.share.state_batches import merged

Send = Callable[[SharePartitionKey, StateUpdate], Pending[None]]


class Waiting(NamedTuple):
    """A write, and its answer."""

    update: StateUpdate
    answer: Pending[None]


class ShareStateWrites:
    """The writes of all share partitions that one part of the broker sends."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[SharePartitionKey, deque[Waiting]] = {}
        """The writes behind the one on its way, for each share partition that has one."""

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        """Send a write after those before it."""
        one = Waiting(update, Pending())
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque()
            self._begin(key, update, [one])
        else:
            queue.append(one)
        return one.answer

    def _begin(self, key: SharePartitionKey, update: StateUpdate, parts: list[Waiting]) -> None:
        def done(_: None) -> None:
            self._go_on(key)
            for part in parts:
                part.answer.complete(None)

        def failed(error: Exception) -> None:
            self._go_on(key)
            for part in parts:
                part.answer.fail(error)

        self._send(key, update).when_done(done, failed)

    def _go_on(self, key: SharePartitionKey) -> None:
        """Send what waits behind a write that is over."""
        queue = self._waiting[key]
        if not queue:
            del self._waiting[key]
            return
        parts = [queue.popleft()]
        update = parts[0].update
        while queue and can_join(update, queue[0].update):
            parts.append(queue.popleft())
            update = joined(update, parts[-1].update)
        self._begin(key, update, parts)


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
