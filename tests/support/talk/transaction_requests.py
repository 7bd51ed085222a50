"""Builders for the requests of a transactional producer, with defaults for irrelevant fields."""

from typing import Any

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.messages import produce as produce_messages
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch

NAME = "t"
TIMEOUT_MS = 60_000
LAST_OF_CLIENTS = 3
"""The last version of AddPartitionsToTxn that producers send."""


def find_coordinator(talk: Dialogue, name: str = NAME) -> None:
    """Find the coordinator, which creates its topic."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    (found,) = talk.ask(request).coordinators
    assert found.error_code == 0


def send_initialize(
    talk: Dialogue,
    name: str = NAME,
    *,
    expected: ProducerIdAndEpoch = ProducerIdAndEpoch(-1, -1),  # noqa: B008 - it is immutable
    timeout_ms: int = TIMEOUT_MS,
    version: int = 5,
) -> Exchange:
    """Initialize a transactional id."""
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    if version >= 3:
        request.producer_id, request.producer_epoch = expected
    return talk.send(request, version)


def initialize(talk: Dialogue, name: str = NAME) -> ProducerIdAndEpoch:
    """Initialize a transactional id, which must succeed."""
    answer = send_initialize(talk, name).answer
    assert answer.error_code == 0
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def send_add(
    talk: Dialogue,
    producer: ProducerIdAndEpoch,
    *places: tuple[str, int],
    name: str = NAME,
    version: int = LAST_OF_CLIENTS,
    verify_only: bool = False,
) -> Exchange:
    """Add partitions to a transaction, or verify that they are part of it."""
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in places]
    if version > LAST_OF_CLIENTS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=verify_only,
            topics=topics,
        )
        return talk.send(AddPartitionsToTxnRequest(transactions=[transaction]), version)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=topics,
    )
    return talk.send(request, version)


def add_codes(exchange: Exchange) -> list[int]:
    """Return the error code of each added partition."""
    answer = exchange.answer
    topics = [t for result in answer.results_by_transaction for t in result.topic_results]
    topics += answer.results_by_topic_v3_and_below
    return [r.partition_error_code for topic in topics for r in topic.results_by_partition]


def add(talk: Dialogue, producer: ProducerIdAndEpoch, *places: tuple[str, int]) -> list[int]:
    """Add partitions; return their error codes."""
    return add_codes(send_add(talk, producer, *places))


def add_offsets(
    talk: Dialogue, producer: ProducerIdAndEpoch, group: str, *, name: str = NAME, version: int = 4
) -> int:
    """Add a group's offsets to a transaction; return the error code."""
    request = AddOffsetsToTxnRequest(
        transactional_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id=group,
    )
    code: int = talk.ask(request, version).error_code
    return code


def send_end(
    talk: Dialogue,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool = True,
    name: str = NAME,
    version: int = 5,
) -> Exchange:
    """End a transaction."""
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )
    return talk.send(request, version)


def end(talk: Dialogue, producer: ProducerIdAndEpoch, *, commit: bool = True) -> ProducerIdAndEpoch:
    """End a transaction successfully; return the producer for the next one."""
    answer = send_end(talk, producer, commit=commit).answer
    assert answer.error_code == 0
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def in_transaction(producer: ProducerIdAndEpoch, sequence: int = 0, count: int = 1) -> bytes:
    """Return a batch that is part of a transaction."""
    return bytes(batch(count, attributes=TRANSACTIONAL, producer=(*producer, sequence)))


def send_produce_in(
    talk: Dialogue,
    batches: list[tuple[str, int, bytes]],
    *,
    name: str | None = NAME,
    version: int = 12,
    acks: int = -1,
) -> Exchange:
    """Send batches to partitions of topics, in one request."""
    topics = [
        produce_messages.TopicProduceData(
            name=topic if version < 13 else "",
            topic_id=NO_TOPIC_ID if version < 13 else talk.node.image.topics[topic].topic_id,
            partition_data=[produce_messages.PartitionProduceData(index=index, records=records)],
        )
        for topic, index, records in batches
    ]
    request = produce_messages.ProduceRequest(
        transactional_id=name, acks=acks, timeout_ms=30_000, topic_data=topics
    )
    return talk.send(request, version)


def produce_results(exchange: Exchange) -> list[Any]:
    """Return the response for each partition."""
    return [r for topic in exchange.answer.responses for r in topic.partition_responses]


def produce_in(
    talk: Dialogue,
    producer: ProducerIdAndEpoch,
    topic: str,
    partition: int = 0,
    *,
    sequence: int = 0,
    version: int = 12,
) -> int:
    """Send one batch in a transaction; return the error code."""
    sent = [(topic, partition, in_transaction(producer, sequence))]
    (result,) = produce_results(send_produce_in(talk, sent, version=version))
    code: int = result.error_code
    return code
