"""Requests of a member of a share group for records, about partition 0 of some topics."""

from collections.abc import Iterable

from barnabas.protocol.message import Message
from barnabas.protocol.messages import share_acknowledge as acks
from barnabas.protocol.messages import share_fetch as fetches

MEMBER = "m"
FETCH_REQUESTS = ("ShareFetch", "ShareAcknowledge")
"""In the order of their keys, from 78 on."""


def fetch_request(group: str, topics: Iterable[bytes]) -> fetches.ShareFetchRequest:
    """Begin a session, and fetch without waiting."""
    partition = fetches.FetchPartition(partition_index=0)
    return fetches.ShareFetchRequest(
        group_id=group,
        member_id=MEMBER,
        share_session_epoch=0,
        max_records=10,
        topics=[fetches.FetchTopic(topic_id=each, partitions=[partition]) for each in topics],
    )


def acknowledge_request(group: str, topics: Iterable[bytes]) -> acks.ShareAcknowledgeRequest:
    """Accept the first record, in the first request of a session that has begun."""
    batch = acks.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = acks.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    return acks.ShareAcknowledgeRequest(
        group_id=group,
        member_id=MEMBER,
        share_session_epoch=1,
        topics=[acks.AcknowledgeTopic(topic_id=each, partitions=[partition]) for each in topics],
    )


def member_request(api: str, group: str, topics: Iterable[bytes]) -> Message:
    """Return the request of an API."""
    make = fetch_request if api == "ShareFetch" else acknowledge_request
    return make(group, topics)
