"""Ids that no producer ever had, given out from blocks that the controller reserves.

A block is used once its reservation is committed; a process that ends leaves the rest unused.
"""

from collections import deque
from typing import TYPE_CHECKING

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from barnabas.node.node import Node


class ProducerIds:
    """The block of this node, and who waits for the next."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._ids = iter(range(0))
        self._waiting: deque[Pending[int]] = deque()
        self._reserving = False

    def next(self, now_ms: int) -> Pending[int]:
        """Give out an id, or fail with an `ApiError` where a block is needed and refused."""
        answer: Pending[int] = Pending()
        self._waiting.append(answer)
        self._serve(now_ms)
        return answer

    def _reserve(self, now_ms: int) -> None:
        """Have a block reserved; whether it is may be known before this returns."""
        node = self._node
        controller = node.controller_id
        if node.is_controller:
            try:
                block = node.controlling.reserve_producer_ids(now_ms)
            except ApiError as error:
                self._give_up(error)
            else:
                block.when_done(self._take, self._give_up)
        elif controller is None:
            self._give_up(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._ask(controller)

    def _ask(self, controller: NodeId) -> None:
        node = self._node
        request = AllocateProducerIdsRequest(
            broker_id=node.node_id, broker_epoch=node.membership.broker_epoch
        )
        node.peers.ask(controller, request).when_done(self._answered, self._give_up)

    def _answered(self, response: AllocateProducerIdsResponse) -> None:
        if response.error_code:
            self._give_up(ApiError(ErrorCode(response.error_code)))
        else:
            start = response.producer_id_start
            self._take(range(start, start + response.producer_id_len))

    def _take(self, block: range) -> None:
        self._ids = iter(block)
        self._reserving = False
        self._serve(self._node.timers.wall_ms)

    def _serve(self, now_ms: int) -> None:
        """Give ids to those who wait, for as long as there are any; then ask for more."""
        while self._waiting:
            fresh = next(self._ids, None)
            if fresh is None:
                break
            self._waiting.popleft().complete(fresh)
        if self._waiting and not self._reserving:
            self._reserving = True
            self._reserve(now_ms)

    def _give_up(self, _: Exception) -> None:
        """Tell those who wait that it did not work this time: they ask again."""
        self._reserving = False
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            lost = "the controller reserved no producer ids"
            answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, lost))
