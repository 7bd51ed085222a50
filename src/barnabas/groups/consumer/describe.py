"""Describes a consumer group for ConsumerGroupDescribe."""

from barnabas.groups.consumer.assignors import DEFAULT
from barnabas.groups.consumer.assignors.spec import Slots
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import Member, by_topic
from barnabas.metadata.image import Image
from barnabas.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from barnabas.protocol.messages.consumer_group_describe import Member as DescribedMember

CONSUMER_MEMBER = 1
"""The type of a member that speaks the protocol of KIP-848."""


def describe(group: ConsumerGroup, image: Image) -> DescribedGroup:
    """Return the description of a group."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members) or DEFAULT,
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: Member, image: Image) -> DescribedMember:
    profile = member.profile
    return DescribedMember(
        member_id=member.member_id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=member.standing.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.names),
        subscribed_topic_regex=profile.regex,
        assignment=_assignment(frozenset(member.standing.held()), image),
        target_assignment=_assignment(group.target_of(member.member_id), image),
        member_type=CONSUMER_MEMBER,
    )


def _assignment(slots: Slots, image: Image) -> Assignment:
    """Return partitions with topic names; those of deleted topics are omitted."""
    found = [
        TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
        for topic_id, numbers in by_topic(slots).items()
        if (topic := image.topic_by_id(topic_id)) is not None
    ]
    return Assignment(topic_partitions=found)
