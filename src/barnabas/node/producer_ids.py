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

    def next(self, now_ms: int) -> Pending[int]:
        """Give out an id; raise `ApiError` where a block is needed and refused at once."""
        answer: Pending[int] = Pending()
        fresh = next(self._ids, None)
        if fresh is not None:
            answer.complete(fresh)
            return answer
        if not self._waiting:
            self._reserve(now_ms)
        self._waiting.append(answer)
        self._serve()
        return answer

    def _reserve(self, now_ms: int) -> None:
        node = self._node
        if node.is_controller:
            block = node.controlling.reserve_producer_ids(now_ms)
            block.when_done(self._take, self._give_up)
            return
        controller = node.controller_id
        if controller is None:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "there is no controller for now")
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
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            fresh = next(self._ids, None)
            if fresh is None:
                return
            self._waiting.popleft().complete(fresh)

    def _give_up(self, _: Exception) -> None:
        """Tell those who wait that it did not work this time: they ask again."""
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            lost = "the controller reserved no producer ids"
            answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, lost))
