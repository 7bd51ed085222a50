"""Decides when a share group moves to another epoch, and computes its target assignment.

All of it works on the members as they will be once the heartbeat's records are replayed.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.groups.consumer import subscriptions
from barnabas.groups.consumer.assignors.spec import Share, Slots
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share import simple_assignor
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.share_member import ShareMember
from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import TopicId

Members = Mapping[str, ShareMember]


class ShareEpochs(NamedTuple):
    """The epochs and the target of a group after a heartbeat, and the records for them."""

    group_epoch: int
    assignment_epoch: int
    targets: Mapping[str, Slots]
    records: list[CoordinatorRecord]


def subscribed(members: Members) -> frozenset[str]:
    """Return every topic that some member subscribes to, existing or not."""
    return frozenset[str]().union(*(member.profile.names for member in members.values()))


def unchanged(group: ShareGroup) -> ShareEpochs:
    """Return the epochs and the target of a group as they are."""
    return ShareEpochs(group.epoch, group.assignment_epoch, group.targets, [])


def new_epoch(group: ShareGroup, members: Members, image: Image, *, bump: bool) -> ShareEpochs:
    """Return the next group epoch, if members (`bump`), topics or partition states changed."""
    names = subscribed(members)
    metadata_hash = subscriptions.metadata_hash(names, image)
    if not (bump or metadata_hash != group.metadata_hash or _is_pending(group, members, image)):
        return unchanged(group)
    epoch = group.epoch + 1
    stored = [records.group_epoch(group.group_id, epoch, metadata_hash)]
    return ShareEpochs(epoch, group.assignment_epoch, group.targets, stored)


def new_targets(
    group: ShareGroup, epochs: ShareEpochs, members: Members, image: Image, now_ms: int
) -> ShareEpochs:
    """Compute the target assignment of the group epoch; store the targets that it changes."""
    assigned = simple_assignor.assign(
        _shares(group, members, image), _assignable(group, members, image)
    )
    changed = [
        records.target(group.group_id, member_id, slots)
        for member_id, slots in sorted(assigned.items())
        if group.targets.get(member_id) != slots
    ]
    done = records.target_epoch(group.group_id, epochs.group_epoch, now_ms)
    stored = [*epochs.records, *changed, done]
    return ShareEpochs(epochs.group_epoch, epochs.group_epoch, assigned, stored)


def _shares(group: ShareGroup, members: Members, image: Image) -> dict[str, Share]:
    topics = image.topics
    return {
        member_id: Share(
            frozenset(topics[name].topic_id for name in member.profile.names if name in topics),
            group.target_of(member_id),
        )
        for member_id, member in members.items()
    }


def _assignable(group: ShareGroup, members: Members, image: Image) -> dict[TopicId, frozenset[int]]:
    """Return the initialized partitions of subscribed topics that exist."""
    initialized = group.states.initialized
    topics = (image.topics.get(name) for name in subscribed(members))
    return {
        topic.topic_id: initialized[topic.topic_id].partitions
        for topic in topics
        if topic is not None and topic.topic_id in initialized
    }


def _is_pending(group: ShareGroup, members: Members, image: Image) -> bool:
    """Tell whether partitions were initialized that no member has in its target yet."""
    if not members or group.epoch > group.assignment_epoch:
        return False  # a new target is computed in any case
    targeted = frozenset[tuple[TopicId, int]]().union(*group.targets.values())
    return any(
        (topic_id, number) not in targeted
        for topic_id, numbers in _assignable(group, members, image).items()
        for number in numbers
    )
