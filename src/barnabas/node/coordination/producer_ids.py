"""Allocates producer ids that were never used, from blocks that the controller reserves.

A block is used once its reservation is committed; when the process ends, the rest stays unused.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class Control(Protocol):
    """Which node is the active controller."""

    @property
    def is_controller(self) -> bool:
        """Whether this node is the active controller."""

    @property
    def controller_id(self) -> NodeId | None:
        """The active controller, as far as this node knows."""


class ProducerIds:
    """The block of this broker, and the requests that wait for the next one."""

    def __init__(
        self,
        me: NodeId,
        control: Control,
        peers: BrokerRequests,
        timers: Timers,
        *,
        reserve: Callable[[int], Pending[range]],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._me = me
        self._control = control
        self._peers = peers
        self._timers = timers
        self._reserve_here = reserve
        self._broker_epoch = broker_epoch
        self._ids = iter(range(0))
        self._waiting: deque[Pending[int]] = deque()
        self._reserving = False

    def next(self, now_ms: int) -> Pending[int]:
        """Return an unused id; fail with an `ApiError` if the controller refuses a block."""
        answer: Pending[int] = Pending()
        self._waiting.append(answer)
        self._serve(now_ms)
        return answer

    def _reserve(self, now_ms: int) -> None:
        """Ask for a block; the answer may come before this returns."""
        controller = self._control.controller_id
        if self._control.is_controller:
            try:
                block = self._reserve_here(now_ms)
            except ApiError as error:
                self._give_up(error)
            else:
                block.when_done(self._take, self._give_up)
        elif controller is None:
            self._give_up(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._ask(controller)

    def _ask(self, controller: NodeId) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._me, broker_epoch=self._broker_epoch())
        self._peers.ask(controller, request).when_done(self._answered, self._give_up)

    def _answered(self, response: AllocateProducerIdsResponse) -> None:
        if response.error_code:
            self._give_up(ApiError(ErrorCode(response.error_code)))
        else:
            start = response.producer_id_start
            self._take(range(start, start + response.producer_id_len))

    def _take(self, block: range) -> None:
        self._ids = iter(block)
        self._reserving = False
        self._serve(self._timers.wall_ms)

    def _serve(self, now_ms: int) -> None:
        """Give ids to waiting requests while there are any; then ask for the next block."""
        while self._waiting:
            fresh = next(self._ids, None)
            if fresh is None:
                break
            self._waiting.popleft().complete(fresh)
        if self._waiting and not self._reserving:
            self._reserving = True
            self._reserve(now_ms)

    def _give_up(self, _: Exception) -> None:
        """Fail all waiting requests: their clients retry."""
        self._reserving = False
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            lost = "the controller reserved no producer ids"
            answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, lost))
