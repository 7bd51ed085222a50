"""Decides when a consumer group moves to another epoch, and computes its target assignment.

All of it works on the members as they will be once the heartbeat's records are replayed.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer import subscriptions
from barnabas.groups.consumer.assignors import ASSIGNORS, DEFAULT
from barnabas.groups.consumer.assignors.spec import NO_SLOTS, Share, Slots
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import Member, ResolvedRegex
from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.name_pattern import PatternError

Members = Mapping[str, Member]
Regexes = Mapping[str, ResolvedRegex]


class Matching(NamedTuple):
    """The topics that patterns are matched with."""

    image: Image
    now_ms: int
    """The calendar's time."""
    describes: Callable[[str], bool] | None = None
    """Tells whether the member whose request causes this may describe a topic; other topics are
    omitted. None if it may describe all."""

    def resolve(self, pattern: str) -> frozenset[str]:
        """Return the topics that a pattern matches."""
        found = subscriptions.resolve(pattern, self.image)
        return found if self.describes is None else frozenset(filter(self.describes, found))


class Occasion(NamedTuple):
    """The input of a rebalance."""

    members: Members
    targets: Mapping[str, Slots]
    """The target assignments so far; a static member that returned has its previous one."""
    regexes: Regexes
    image: Image
    now_ms: int
    """The calendar's time."""


class Epochs(NamedTuple):
    """The epochs and the target of a group after a heartbeat, and the records for them."""

    assignment_epoch: int
    targets: Mapping[str, Slots]
    records: list[CoordinatorRecord]


def refresh_regexes(
    group: ConsumerGroup, members: Members, matching: Matching, *, again: bool
) -> tuple[Regexes, list[CoordinatorRecord]]:
    """Match new patterns, or all of them again; delete those that no member has.

    Raises INVALID_REGULAR_EXPRESSION if a new one is invalid.
    """
    wanted = {member.profile.regex for member in members.values()} - {""}
    known = {pattern: group.regexes[pattern] for pattern in wanted & group.regexes.keys()}
    found: dict[str, ResolvedRegex] = {}
    for pattern in sorted(wanted - known.keys()):
        found[pattern] = ResolvedRegex(_match(pattern, matching), matching.now_ms)
    for pattern in sorted(known) if again else ():
        topics = _match_again(pattern, known[pattern], matching)
        if topics != known[pattern].topics:
            found[pattern] = ResolvedRegex(topics, matching.now_ms)
    ended = sorted(group.regexes.keys() - wanted)
    return {**known, **found}, [
        *(records.end_of_regex(group.group_id, pattern) for pattern in ended),
        *(records.regex(group.group_id, pattern, regex) for pattern, regex in found.items()),
    ]


def _match(pattern: str, matching: Matching) -> frozenset[str]:
    try:
        return matching.resolve(pattern)
    except PatternError as error:
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


def _match_again(pattern: str, known: ResolvedRegex, matching: Matching) -> frozenset[str]:
    """Match a pattern that was valid before; with more topics it may take too much work."""
    try:
        return matching.resolve(pattern)
    except PatternError:
        return known.topics


def new_group_epoch(
    group: ConsumerGroup, members: Members, regexes: Regexes, image: Image, *, bump: bool
) -> CoordinatorRecord | None:
    """Return the record of the next epoch, if members (`bump`) or topics have changed."""
    names = subscriptions.subscribed_topics(members.values(), regexes)
    metadata_hash = subscriptions.metadata_hash(names, image)
    if not bump and metadata_hash == group.metadata_hash:
        return None
    return records.group_epoch(group.group_id, group.epoch + 1, metadata_hash)


def new_targets(group: ConsumerGroup, epoch: int, occasion: Occasion) -> Epochs:
    """Compute a new target assignment; return the records of the members that it changes."""
    assigned = _assign(group, occasion)
    changed = [
        records.target(group.group_id, member_id, slots)
        for member_id, slots in sorted(assigned.items())
        if occasion.targets.get(member_id) != slots
    ]
    done = records.target_epoch(group.group_id, epoch, occasion.now_ms)
    return Epochs(epoch, assigned, [*changed, done])


def _assign(group: ConsumerGroup, occasion: Occasion) -> dict[str, Slots]:
    preferred = group.preferred_assignor(occasion.members) or DEFAULT
    assign = ASSIGNORS.get(preferred, ASSIGNORS[DEFAULT])
    topics = occasion.image.topics
    shares = {
        member_id: Share(
            frozenset(subscriptions.topic_ids(member, occasion.regexes, occasion.image)),
            occasion.targets.get(member_id, NO_SLOTS),
            member.profile.instance_id,
        )
        for member_id, member in occasion.members.items()
    }
    names = subscriptions.subscribed_topics(occasion.members.values(), occasion.regexes)
    counts = {
        topics[name].topic_id: len(topics[name].partitions) for name in names if name in topics
    }
    return assign(shares, counts)
