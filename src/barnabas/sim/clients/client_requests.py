"""Builds the requests of simulated clients, with only the necessary fields."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages import (
    add_partitions_to_txn,
    fetch,
    find_coordinator,
    offset_commit,
    offset_fetch,
    produce,
    txn_offset_commit,
)
from barnabas.protocol.records import TRANSACTIONAL, Record, build

GROUP, TRANSACTION = 0, 1
BY_NAME = 12
"""The last version of Produce and of Fetch that identifies topics by name."""
OFFSET_COMMIT = 9
OFFSET_FETCH = 9


def coordinator(key: str, key_type: int) -> find_coordinator.FindCoordinatorRequest:
    """Look up the coordinator, which also creates the internal topic."""
    return find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])


def batch_of(
    values: Iterable[str],
    producer: ProducerIdAndEpoch,
    sequence: int,
    *,
    transactional: bool,
    now_ms: int,
) -> bytes:
    """Return a batch in the form that a producer sends."""
    content = [Record(n, now_ms, None, value.encode()) for n, value in enumerate(values)]
    return bytes(
        build(
            content,
            attributes=TRANSACTIONAL if transactional else 0,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
        )
    )


def produce_to(
    partition: TopicPartition, batch: bytes, transactional_id: str | None = None
) -> produce.ProduceRequest:
    """Write one batch to one partition with acks=all."""
    data = produce.PartitionProduceData(index=partition.partition, records=batch)
    topic = produce.TopicProduceData(name=partition.topic, partition_data=[data])
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=5_000, topic_data=[topic]
    )


def fetch_from(
    partition: TopicPartition, offset: int, *, committed: bool, wait_ms: int = 0
) -> fetch.FetchRequest:
    """Read one partition."""
    wanted = fetch.FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=4_000
    )
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[fetch.FetchTopic(topic=partition.topic, partitions=[wanted])],
    )


def add_partition(
    name: str, producer: ProducerIdAndEpoch, partition: TopicPartition
) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    """Add a partition to a transaction, as producers before transaction version 2 do."""
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(
        name=partition.topic, partitions=[partition.partition]
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[topic],
    )


def commit_offset(
    group: str,
    partition: TopicPartition,
    offset: int,
    note: str,
    *,
    member: str = "",
    epoch: int = -1,
    instance: str | None = None,
) -> offset_commit.OffsetCommitRequest:
    """Commit the offset of a group."""
    part = offset_commit.OffsetCommitRequestPartition(
        partition_index=partition.partition, committed_offset=offset, committed_metadata=note
    )
    topic = offset_commit.OffsetCommitRequestTopic(name=partition.topic, partitions=[part])
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=instance,
        topics=[topic],
    )


def commit_in_transaction(
    name: str,
    producer: ProducerIdAndEpoch,
    group: str,
    offsets: Mapping[TopicPartition, tuple[int, str]],
    *,
    member: str = "",
    epoch: int = -1,
) -> txn_offset_commit.TxnOffsetCommitRequest:
    """Commit the offset of a group as part of a transaction."""
    topics = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=partition.topic,
            partitions=[
                txn_offset_commit.TxnOffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset,
                    committed_metadata=note,
                )
            ],
        )
        for partition, (offset, note) in offsets.items()
    ]
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id=epoch,
        member_id=member,
        topics=topics,
    )


def fetch_offsets(
    group: str, partitions: Sequence[TopicPartition]
) -> offset_fetch.OffsetFetchRequest:
    """Fetch the committed offsets of a group, with `require_stable`."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    topics = [
        offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
        for name, numbers in by_topic.items()
    ]
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
    return offset_fetch.OffsetFetchRequest(groups=[asked], require_stable=True)
