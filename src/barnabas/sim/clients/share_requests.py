"""Builds the requests of simulated members of share groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.node.share.share_sessions import Place
from barnabas.protocol.messages import share_acknowledge, share_fetch
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

ACK_BATCH_CHANCE = 0.7


class AckBatch(NamedTuple):
    """A run of offsets with one answer for all, or one for each."""

    first: int
    last: int
    kinds: list[int]


Acks = Mapping[Place, Sequence[AckBatch]]


class Wanted(NamedTuple):
    """What a fetch asks for."""

    wait_ms: int = 0
    size: int = 0
    records: int = 0
    is_exact: bool = False
    is_renewal: bool = False


def share_fetch_of(
    owner: tuple[str, str],
    epoch: int,
    acks: Acks,
    wanted: Wanted,
    forgotten: Iterable[Place] = (),
) -> share_fetch.ShareFetchRequest:
    """Fetch the partitions of a session; name partitions, some with acknowledgements."""
    topics: dict[bytes, share_fetch.FetchTopic] = {}
    for place, batches in acks.items():
        topic = topics.setdefault(place.topic_id, share_fetch.FetchTopic(topic_id=place.topic_id))
        found = [
            share_fetch.AcknowledgementBatch(
                first_offset=each.first, last_offset=each.last, acknowledge_types=each.kinds
            )
            for each in batches
        ]
        topic.partitions.append(
            share_fetch.FetchPartition(
                partition_index=place.partition, acknowledgement_batches=found
            )
        )
    left = [
        share_fetch.ForgottenTopic(topic_id=place.topic_id, partitions=[place.partition])
        for place in forgotten
    ]
    return share_fetch.ShareFetchRequest(
        group_id=owner[0],
        member_id=owner[1],
        share_session_epoch=epoch,
        max_wait_ms=wanted.wait_ms,
        min_bytes=1 if wanted.size else 0,
        max_bytes=wanted.size,
        max_records=wanted.records,
        batch_size=wanted.records,
        share_acquire_mode=int(wanted.is_exact),
        is_renew_ack=wanted.is_renewal,
        topics=list(topics.values()),
        forgotten_topics_data=left,
    )


def share_acknowledge_of(
    owner: tuple[str, str], epoch: int, acks: Acks, *, is_renewal: bool = False
) -> share_acknowledge.ShareAcknowledgeRequest:
    """Acknowledge without a fetch."""
    topics: dict[bytes, share_acknowledge.AcknowledgeTopic] = {}
    for place, batches in acks.items():
        topic = topics.setdefault(
            place.topic_id, share_acknowledge.AcknowledgeTopic(topic_id=place.topic_id)
        )
        found = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=each.first, last_offset=each.last, acknowledge_types=each.kinds
            )
            for each in batches
        ]
        topic.partitions.append(
            share_acknowledge.AcknowledgePartition(
                partition_index=place.partition, acknowledgement_batches=found
            )
        )
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=owner[0],
        member_id=owner[1],
        share_session_epoch=epoch,
        is_renew_ack=is_renewal,
        topics=list(topics.values()),
    )


def metadata_of(topics: Iterable[str]) -> MetadataRequest:
    """Look up topic ids and leaders."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )


def delete_records_below(topic: str, partition: int, offset: int) -> DeleteRecordsRequest:
    """Move the start of a partition's log."""
    part = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=5_000
    )
