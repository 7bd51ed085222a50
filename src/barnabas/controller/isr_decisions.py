"""Decides on ISR changes that leaders propose (AlterPartition, key 56, version 3).

A leader's proposal may be outdated: while the request waits on a slow link, another leader may be
elected, a follower may restart with fewer records, or the controller may fence it. So each part of
a proposal names the state it was made in, and an outdated one is refused. Each rule is a function
of its own:

    sender_is_current     the sender is the process that is registered, not an earlier one
    leads_in_this_epoch   it leads, in the epoch in which it proposes
    knows_this_partition  the partition has not changed since
    may_be_in_sync        no member is fenced or stopping (KAFKA-14154), and each is the process
                          whose fetches the leader saw, not a later one with less (KIP-903)

A leader whose log is damaged proposes an ISR without itself (`LOG_DAMAGED`, a value of ours for
Kafka's leader recovery state). Another in-sync replica then leads, and the old leader no longer
counts as having the acknowledged records. A leader whose disk refuses appends does the same
(`DISK_REFUSES`); it still has everything that it acknowledged.

Error codes are Kafka's: FENCED_LEADER_EPOCH and INVALID_UPDATE_VERSION for an outdated proposal,
NOT_CONTROLLER for an epoch that this controller does not know yet, so that another one must.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.controller.partition_change import in_order, records_of, settle
from barnabas.controller.topic_rules import rules_of
from barnabas.metadata.image import Image, PartitionImage
from barnabas.metadata.metadata_records import PartitionChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)

ANY_EPOCH = -1
"""Names no process: a leader does not know the epoch of a member that has not fetched yet."""

LOG_DAMAGED = 2
"""The recovery state of a leader whose log is damaged."""
DISK_REFUSES = 3
"""The recovery state of a leader whose disk refuses appends."""


class Altered(NamedTuple):
    """The outcome of proposals; the response is sent when the records are committed."""

    records: list[PartitionChanged]
    response: AlterPartitionResponse


def alter_partition(
    image: Image, request: AlterPartitionRequest, defaults: Mapping[str, str]
) -> Altered:
    """Decide on a leader's proposals, each partition by itself."""
    sender_is_current(image, request.broker_id, request.broker_epoch)
    records: list[PartitionChanged] = []
    answers = []
    decided = set[tuple[bytes, int]]()
    for topic in request.topics:
        results = []
        for proposal in topic.partitions:
            key = (topic.topic_id, proposal.partition_index)
            try:
                if key in decided:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "a partition is named twice")  # noqa: TRY301
                decided.add(key)
                made, result = _alter(image, request.broker_id, topic.topic_id, proposal, defaults)
                records += made
            except ApiError as error:
                result = AlterPartitionResponsePartitionData(
                    partition_index=proposal.partition_index, error_code=error.code
                )
            results.append(result)
        answers.append(AlterPartitionResponseTopicData(topic_id=topic.topic_id, partitions=results))
    return Altered(records, AlterPartitionResponse(topics=answers))


def sender_is_current(image: Image, node_id: int, broker_epoch: int) -> None:
    """Refuse a request of an earlier process of a broker."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        known = "not registered" if broker is None else f"registered as {broker.broker_epoch}"
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {node_id} sent broker epoch {broker_epoch}; it is {known}",
        )


def leads_in_this_epoch(partition: PartitionImage, node_id: int, leader_epoch: int) -> None:
    """Refuse a proposal of a broker that is not the leader of this epoch."""
    if leader_epoch > partition.leader_epoch:
        raise ApiError(ErrorCode.NOT_CONTROLLER, "the leader epoch is not known here yet")
    if leader_epoch < partition.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, "the leader epoch is outdated")
    if partition.leader != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"broker {partition.leader} leads")


def knows_this_partition(partition: PartitionImage, partition_epoch: int) -> None:
    """Refuse a proposal that was made before the partition last changed."""
    if partition_epoch > partition.partition_epoch:
        raise ApiError(ErrorCode.NOT_CONTROLLER, "the partition epoch is not known here yet")
    if partition_epoch < partition.partition_epoch:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, "the partition has changed since")


def may_be_in_sync(image: Image, partition: PartitionImage, member: BrokerState) -> bool:
    """Whether a broker may be in sync, as the process that the leader saw."""
    broker = image.brokers.get(member.broker_id)
    if broker is None or not is_available(image, member.broker_id):
        return False
    unseen = member.broker_epoch == ANY_EPOCH and member.broker_id in partition.isr
    return unseen or member.broker_epoch == broker.broker_epoch


def is_available(image: Image, node_id: int) -> bool:
    """Whether a broker is neither fenced nor about to stop."""
    return image.is_active(node_id)


def _alter(
    image: Image,
    leader: int,
    topic_id: bytes,
    proposal: AlterPartitionRequestPartitionData,
    defaults: Mapping[str, str],
) -> tuple[list[PartitionChanged], AlterPartitionResponsePartitionData]:
    topic = image.topic_by_id(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    number = proposal.partition_index
    if not 0 <= number < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = topic.partitions[number]
    leads_in_this_epoch(before, leader, proposal.leader_epoch)
    knows_this_partition(before, proposal.partition_epoch)
    members = proposal.new_isr_with_epochs
    _check_members(before, proposal)
    if not all(may_be_in_sync(image, before, member) for member in members):
        raise ApiError(ErrorCode.INELIGIBLE_REPLICA)
    isr = in_order(before.replicas, [member.broker_id for member in members])
    gone = hands_over(proposal)
    unclean = before.unclean if gone else proposal.leader_recovery_state != 0
    wanted = replace(before, isr=isr, unclean=unclean)
    rules, untrusted = rules_of(topic, defaults), [leader] if has_damaged_log(proposal) else []
    after = settle(before, wanted, rules, image.is_active, untrusted=untrusted)
    return records_of(topic, number, before, after), _answer(leader, number, after)


def hands_over(proposal: AlterPartitionRequestPartitionData) -> bool:
    """Whether a leader asks for another replica to lead."""
    state = proposal.leader_recovery_state
    return state in (LOG_DAMAGED, DISK_REFUSES) and bool(proposal.new_isr_with_epochs)


def has_damaged_log(proposal: AlterPartitionRequestPartitionData) -> bool:
    """Whether it asks for that because its own log is damaged."""
    return proposal.leader_recovery_state == LOG_DAMAGED and hands_over(proposal)


def _check_members(before: PartitionImage, proposal: AlterPartitionRequestPartitionData) -> None:
    """Refuse an ISR that is invalid in any state of its members."""
    proposed = [member.broker_id for member in proposal.new_isr_with_epochs]
    recovering = proposal.leader_recovery_state != 0 and not hands_over(proposal)
    if (
        len(set(proposed)) != len(proposed)
        or (before.leader not in proposed) != hands_over(proposal)
        or not all(n in before.replicas for n in proposed)
        # No replica is in sync with a leader that is still recovering.
        or (recovering and (not before.unclean or len(proposed) > 1))
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{proposed} cannot be in sync")


def _answer(sender: int, number: int, after: PartitionImage) -> AlterPartitionResponsePartitionData:
    """Answer the leader with the new state of the partition, or that it no longer leads."""
    deposed = after.leader != sender
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        error_code=ErrorCode.NEW_LEADER_ELECTED if deposed else ErrorCode.NONE,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=int(after.unclean),
        partition_epoch=after.partition_epoch,
    )
