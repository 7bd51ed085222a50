"""Asks one broker for the groups that it coordinates: members and committed offsets.

A broker lists exactly the groups of its own coordinators, so nothing has to be looked up. Requests
name at most `GROUPS_AT_ONCE` groups: a broker serves no other client while it answers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from struct import Struct
from struct import error as struct_error
from typing import TypeVar

from barnabas.admin.scopes import Place
from barnabas.model.errors import ErrorCode
from barnabas.monitor.broker_line import BrokerLine
from barnabas.monitor.cluster_answers import GroupAnswer
from barnabas.monitor.states import GroupMember
from barnabas.protocol.messages import consumer_group_describe as modern
from barnabas.protocol.messages import describe_groups as classic
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUPS_AT_ONCE = 100
MANY_GROUPS_FROM = 8
"""The first version of OffsetFetch that asks for several groups."""
CONSUMER = "consumer"
EMPTY = "Empty"
WITHOUT_COMMITS = {"share"}
"""Types of groups that commit no offsets."""

_SHORT = Struct(">h")
_INT = Struct(">i")
T = TypeVar("T")
Topics = Iterable[OffsetFetchResponseTopic | OffsetFetchResponseTopics]


@dataclass(slots=True)
class GroupsOfBroker:
    """The groups of one broker."""

    groups: dict[str, GroupAnswer] = field(default_factory=dict)
    is_complete: bool = True
    """Whether all of them are listed."""
    refused: Counter[str] = field(default_factory=Counter)
    """How many groups could not be described, by the name of the error."""


def ask_groups(line: BrokerLine) -> GroupsOfBroker:
    """Return the groups that a broker coordinates; raise `LinkError` if it does not answer."""
    answer = line.ask(ListGroupsRequest(), ListGroupsResponse)
    found = GroupsOfBroker()
    if answer.error_code:
        found.is_complete = False
        found.refused[error_name(answer.error_code)] += 1
        return found
    listed = {each.group_id: each for each in answer.groups}
    members = _members(line, listed.values(), found.refused)
    commits = _commits(line, listed.values(), found.refused)
    for name, each in listed.items():
        assignor, described = members.get(name, ("", () if _is_memberless(each) else None))
        found.groups[name] = GroupAnswer(
            name=name,
            type=each.group_type.lower() or None,
            state=each.group_state or "Unknown",
            assignor=assignor,
            coordinator=line.broker,
            members=described,
            commits={} if _has_no_commits(each) else commits.get(name),
        )
    return found


Described = tuple[str, tuple[GroupMember, ...]]
"""The assignor and the members of a group."""


def _members(
    line: BrokerLine, listed: Iterable[ListedGroup], refused: Counter[str]
) -> dict[str, Described]:
    asked = [each for each in listed if not _is_memberless(each)]
    is_modern = {each.group_id: each.group_type.lower() == CONSUMER for each in asked}
    found: dict[str, Described] = {}
    for names in pieces(name for name, yes in is_modern.items() if not yes):
        answer = line.ask(
            classic.DescribeGroupsRequest(groups=names), classic.DescribeGroupsResponse
        )
        for group in answer.groups:
            if group.error_code:
                refused[error_name(group.error_code)] += 1
            else:
                found[group.group_id] = (group.protocol_data, tuple(map(_classic, group.members)))
    for names in pieces(name for name, yes in is_modern.items() if yes):
        request = modern.ConsumerGroupDescribeRequest(group_ids=names)
        for each in line.ask(request, modern.ConsumerGroupDescribeResponse).groups:
            if each.error_code:
                refused[error_name(each.error_code)] += 1
            else:
                found[each.group_id] = (each.assignor_name, tuple(map(_modern, each.members)))
    return found


def _is_memberless(each: ListedGroup) -> bool:
    """Return whether there is nothing to describe: no member, or an unknown kind of group."""
    return each.group_state == EMPTY or each.group_type.lower() not in ("", "classic", CONSUMER)


def _has_no_commits(each: ListedGroup) -> bool:
    return each.group_type.lower() in WITHOUT_COMMITS


def _classic(member: classic.DescribedGroupMember) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        instance_id=member.group_instance_id,
        host=member.client_host,
        partitions=assigned(bytes(member.member_assignment)),
    )


def _modern(member: modern.Member) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        instance_id=member.instance_id,
        host=member.client_host,
        partitions=tuple(
            (each.topic_name, number)
            for each in member.assignment.topic_partitions
            for number in each.partitions
        ),
    )


def assigned(content: bytes) -> tuple[Place, ...]:
    """Return the partitions in a ConsumerProtocolAssignment; none where it is something else.

    Groups of other protocols (Kafka Connect, schema registries) have assignments of their own.
    """
    try:
        return tuple(_assigned(content))
    except (struct_error, UnicodeDecodeError):
        return ()


def _assigned(content: bytes) -> Iterator[Place]:
    if not content:
        return
    (topics,) = _INT.unpack_from(content, 2)
    position = 6
    for _ in range(topics):
        (size,) = _SHORT.unpack_from(content, position)
        position += 2 + size
        name = content[position - size : position].decode()
        (count,) = _INT.unpack_from(content, position)
        position += 4
        for _ in range(count):
            yield name, _INT.unpack_from(content, position)[0]
            position += 4


def _commits(
    line: BrokerLine, listed: Iterable[ListedGroup], refused: Counter[str]
) -> dict[str, dict[Place, int]]:
    names = [each.group_id for each in listed if not _has_no_commits(each)]
    if not names:
        return {}
    if not line.serves(OffsetFetchRequest, MANY_GROUPS_FROM):
        return _commits_one_by_one(line, names, refused)
    found = {}
    for piece in pieces(names):
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in piece]
        for each in line.ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse).groups:
            if each.error_code:
                refused[error_name(each.error_code)] += 1
            else:
                found[each.group_id] = _offsets(each.topics)
    return found


def _commits_one_by_one(
    line: BrokerLine, names: Sequence[str], refused: Counter[str]
) -> dict[str, dict[Place, int]]:
    found = {}
    for name in names:
        answer = line.ask(OffsetFetchRequest(group_id=name, topics=None), OffsetFetchResponse)
        if answer.error_code:
            refused[error_name(answer.error_code)] += 1
        else:
            found[name] = _offsets(answer.topics)
    return found


def _offsets(topics: Topics) -> dict[Place, int]:
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in topics
        for each in topic.partitions
        if each.committed_offset >= 0 and not each.error_code
    }


def pieces(items: Iterable[T], size: int = GROUPS_AT_ONCE) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    left = iter(items)
    while piece := list(islice(left, size)):
        yield piece


def error_name(code: int) -> str:
    """Return the name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def described(refused: Mapping[str, int], noun: str) -> list[str]:
    """Return what was refused, as sentences."""
    return [
        f"{count:,} {noun}{'' if count == 1 else 's'} could not be read: {name}"
        for name, count in refused.items()
    ]
