"""DescribeGroups: describes a classic group for operators."""

from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.groups.classic.classic_member import Member
from barnabas.groups.directory import Group, GroupType
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

NOT_FOUND_FROM = 6
"""From this version on a group that does not exist is an error (KIP-1043); before, it is Dead."""


def described(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """Describe a group; one of another protocol counts as missing."""
    if group is None or group.type is not GroupType.CLASSIC:
        problem = "not found" if group is None else "is not a classic group"
        return _not_found(group_id, f"Group {group_id} {problem}.", version)
    answer = DescribedGroup(
        group_id=group_id, group_state=group.state, protocol_type=group.protocol_type
    )
    if isinstance(group, ClassicGroup):
        answer.members = [_described_member(member) for member in group.members.values()]
        if group.state is State.STABLE:
            _add_protocol(answer, group)
    return answer


def _add_protocol(answer: DescribedGroup, group: ClassicGroup) -> None:
    """Return the protocol of a stable group, and what each member told the leader about it."""
    answer.protocol_data = group.protocol or ""
    for told, member in zip(answer.members, group.members.values(), strict=True):
        told.member_metadata = member.metadata(group.protocol)


def _described_member(member: Member) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_assignment=member.assignment,
    )


def _not_found(group_id: str, message: str, version: int) -> DescribedGroup:
    answer = DescribedGroup(group_id=group_id, group_state=State.DEAD)
    if version >= NOT_FOUND_FROM:
        answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        answer.error_message = message
    return answer
