"""Tests blocks of producer ids: every waiting request gets a response, whatever happens."""

from collections import deque
from typing import Any

from barnabas.model.errors import ApiError, ErrorCode, PeerLostError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.coordination.producer_ids import ProducerIds
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse


class Asking:
    """A node whose controller a test plays."""

    def __init__(self, *answers: Pending[Any]) -> None:
        self.answers = deque(answers)
        self.is_controller = False
        self.controller_id = NodeId(2)
        self.ids = ProducerIds(
            NodeId(1), self, self, Timers(), reserve=self.reserve, broker_epoch=lambda: 5
        )
        self.told: list[int | ErrorCode] = []

    def ask(self, *_: object, **__: object) -> Pending[Any]:
        return self.answers.popleft()

    def reserve(self, _: int) -> Pending[range]:
        raise AssertionError

    def next(self) -> None:
        self.ids.next(0).when_done(self.told.append, self._refused)

    def _refused(self, error: Exception) -> None:
        assert isinstance(error, ApiError)
        self.told.append(error.code)


def block(start: int, count: int) -> Pending[Any]:
    return Pending.of(AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=count))


def lost() -> Pending[Any]:
    answer: Pending[Any] = Pending()
    answer.fail(PeerLostError("the controller is unknown"))
    return answer


def test_ids_come_from_a_block_until_it_is_used_up() -> None:
    asking = Asking(block(1000, 2), block(5000, 2))
    for _ in range(3):
        asking.next()
    assert asking.told == [1000, 1001, 5000]


def test_a_request_that_waits_for_a_too_small_block_gets_the_next() -> None:
    first: Pending[Any] = Pending()
    asking = Asking(first, block(5000, 2))
    asking.next()
    asking.next()
    assert asking.told == []
    first.complete(AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1))
    assert asking.told == [1000, 5000]


def test_a_refusal_that_comes_at_once_does_not_keep_the_next_one_from_asking() -> None:
    asking = Asking(lost(), block(1000, 2))
    asking.next()
    assert asking.told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    asking.next()
    assert asking.told[1:] == [1000]
