"""Describes a share group for ShareGroupDescribe."""

from barnabas.groups.consumer.consumer_member import by_topic
from barnabas.groups.share import simple_assignor
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.share_member import ShareMember
from barnabas.metadata.image import Image
from barnabas.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)


def describe(group: ShareGroup, image: Image) -> DescribedGroup:
    """Return the description of a group."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=simple_assignor.NAME,
        members=[_member(member, image) for member in group.members.values()],
    )


def _member(member: ShareMember, image: Image) -> Member:
    profile = member.profile
    return Member(
        member_id=member.member_id,
        rack_id=profile.rack_id,
        member_epoch=member.standing.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.names),
        assignment=_assignment(member, image),
    )


def _assignment(member: ShareMember, image: Image) -> Assignment:
    """Return partitions with topic names; those of deleted topics are omitted."""
    found = [
        TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
        for topic_id, numbers in by_topic(member.standing.assigned).items()
        if (topic := image.topic_by_id(topic_id)) is not None
    ]
    return Assignment(topic_partitions=found)
