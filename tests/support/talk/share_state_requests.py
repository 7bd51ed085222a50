"""Requests to share coordinators, about partition 0 of some topics."""

from collections.abc import Callable, Iterable

from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    delete_share_group_state as deletes,
)
from barnabas.protocol.messages import (
    initialize_share_group_state as initializes,
)
from barnabas.protocol.messages import (
    read_share_group_state as reads,
)
from barnabas.protocol.messages import (
    read_share_group_state_summary as summaries,
)
from barnabas.protocol.messages import (
    write_share_group_state as writes,
)
from tests.support.talk.share_talk import GROUP

STATE_REQUESTS = (
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
)
"""In the order of their keys, from 83 on."""


def initialize_request(
    topics: Iterable[bytes], start: int = 0, group: str = GROUP, *, state_epoch: int = 0
) -> initializes.InitializeShareGroupStateRequest:
    """Let share partitions begin anew."""
    part = initializes.PartitionData(partition=0, state_epoch=state_epoch, start_offset=start)
    return initializes.InitializeShareGroupStateRequest(
        group_id=group,
        topics=[
            initializes.InitializeStateData(topic_id=each, partitions=[part]) for each in topics
        ],
    )


def read_request(
    topics: Iterable[bytes], leader_epoch: int = 0
) -> reads.ReadShareGroupStateRequest:
    """Read states."""
    part = reads.PartitionData(partition=0, leader_epoch=leader_epoch)
    return reads.ReadShareGroupStateRequest(
        group_id=GROUP,
        topics=[reads.ReadStateData(topic_id=each, partitions=[part]) for each in topics],
    )


def write_request(
    topics: Iterable[bytes], first: int, last: int, state: int = 2, *, leader_epoch: int = 0
) -> writes.WriteShareGroupStateRequest:
    """Store one run of offsets."""
    batch = writes.StateBatch(
        first_offset=first, last_offset=last, delivery_state=state, delivery_count=1
    )
    part = writes.PartitionData(
        partition=0, leader_epoch=leader_epoch, start_offset=-1, state_batches=[batch]
    )
    return writes.WriteShareGroupStateRequest(
        group_id=GROUP,
        topics=[writes.WriteStateData(topic_id=each, partitions=[part]) for each in topics],
    )


def delete_request(topics: Iterable[bytes]) -> deletes.DeleteShareGroupStateRequest:
    """Delete states."""
    part = deletes.PartitionData(partition=0)
    return deletes.DeleteShareGroupStateRequest(
        group_id=GROUP,
        topics=[deletes.DeleteStateData(topic_id=each, partitions=[part]) for each in topics],
    )


def summary_request(topics: Iterable[bytes]) -> summaries.ReadShareGroupStateSummaryRequest:
    """Read summaries."""
    part = summaries.PartitionData(partition=0)
    return summaries.ReadShareGroupStateSummaryRequest(
        group_id=GROUP,
        topics=[
            summaries.ReadStateSummaryData(topic_id=each, partitions=[part]) for each in topics
        ],
    )


def state_request(api: str, topics: Iterable[bytes]) -> Message:
    """Return a plain request of one of the APIs."""
    makers: dict[str, Callable[[Iterable[bytes]], Message]] = {
        "InitializeShareGroupState": initialize_request,
        "ReadShareGroupState": read_request,
        "WriteShareGroupState": lambda named: write_request(named, 0, 4),
        "DeleteShareGroupState": delete_request,
        "ReadShareGroupStateSummary": summary_request,
    }
    return makers[api](topics)
