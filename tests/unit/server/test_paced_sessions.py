"""A connection whose client uses too much of the event loop, and then leaves the fast path once."""

import pytest

from barnabas.metadata.security_image import entity_of
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.talk.one_connection import Asked, OneConnection, decoded
from tests.support.talk.requests import batch

EVENT_MS = 40


class Charged(OneConnection):
    """A connection each event of which takes 40 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.edge.create("t", number=1)
        self._ns = 0
        self._server.monotonic_ns = self._later  # type: ignore[method-assign]

    def _later(self) -> int:
        self._ns += EVENT_MS * 1_000_000
        return self._ns

    @property
    def prefix_bytes(self) -> int:
        """How much of the last request the fast path knows; 0 if a handler serves the next one."""
        session = self.connection.session
        return session._prefix_bytes  # type: ignore[attr-defined,no-any-return]

    def limit(self, percent: float | None) -> None:
        """Set the share of the event loop that the client may use."""
        self.edge.node.quotas.change(entity_of({"user": None}), "request_percentage", percent)


def produce() -> Asked:
    data = PartitionProduceData(index=0, records=bytes(batch(start_ms=1_000_000)))
    topic = TopicProduceData(name="t", partition_data=[data])
    return Asked(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic]), 9)


@pytest.fixture
def one() -> Charged:
    return Charged()


def test_the_fast_path_stays_on_under_a_quota(one: Charged) -> None:
    one.limit(100)
    for number in range(5):
        one.arrive(produce().frame(number))
    assert len(one.answers) == 5
    assert one.prefix_bytes > 0
    assert not one.connection.is_muted


def test_a_client_over_its_quota_is_told_by_the_next_answer(one: Charged) -> None:
    one.arrive(produce().frame(0))
    assert one.prefix_bytes > 0
    one.limit(1)  # 100 ms may be used at once; the first request is not charged
    for number in range(1, 5):
        one.arrive(produce().frame(number))
    assert one.prefix_bytes == 0, "a handler serves the next one"
    one.arrive(produce().frame(5))
    assert one.connection.is_muted
    answers = decoded([produce()] * 6, one.answers)
    assert len(answers) == 6
    told_ms = int.from_bytes(one.answers[-1][-5:-1], "big")
    assert 0 < told_ms <= 1_000
    one.arrive(produce().frame(6))
    assert len(one.answers) == 6, "the connection is not read"
    one.finish(7)
    assert len(one.answers) == 7


def test_a_quota_for_used_time_reaches_a_client_on_the_fast_path(one: Charged) -> None:
    """The session has no quota to charge until a handler has served a request."""
    for number in range(3):
        one.arrive(produce().frame(number))
    one.limit(1)
    one.arrive(produce().frame(3))
    one.arrive(produce().frame(4))
    session = one.connection.session
    assert session._quota is not None  # type: ignore[attr-defined]


def test_without_a_quota_no_time_is_taken(one: Charged) -> None:
    one.arrive(produce().frame(0))
    assert one._ns == 0
    one.limit(1)
    request = Asked(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    one.arrive(request.frame(1))
    assert one._ns == 2 * EVENT_MS * 1_000_000
    one.limit(None)
    one.arrive(produce().frame(2))
    assert one._ns == 2 * EVENT_MS * 1_000_000
