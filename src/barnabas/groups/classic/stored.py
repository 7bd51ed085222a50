"""Classic groups as records of `__consumer_offsets`: the last record of a group counts.

The version is the one that Kafka 4 writes, so that its brokers and tools can read them.
"""

from collections.abc import Mapping

from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.groups.classic.classic_member import Member
from barnabas.model.coordination import CoordinatorRecord, Scheduler
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

VERSION = 3
UNKNOWN_TIME = -1


def group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes] | None = None
) -> CoordinatorRecord:
    """Return the record of a group, with the present or the next assignments of its members."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=(
            UNKNOWN_TIME if group.state_since_ms is None else group.state_since_ms
        ),
        members=[
            _member_record(member, group.protocol, assignments) for member in group.members.values()
        ],
    )
    return encode(GroupMetadataKey(group=group.group_id), value, VERSION)


def restored(group_id: str, value: GroupMetadataValue, clock: Scheduler) -> ClassicGroup:
    """Return a group as it was stored: Stable if it has members."""
    since_ms = value.current_state_timestamp
    group = ClassicGroup(group_id, clock)
    group.state_since_ms = None if since_ms == UNKNOWN_TIME else since_ms
    for stored in value.members:
        group.add(_member(stored, value.protocol or ""), value.protocol_type)
    group.state = State.STABLE if group.members else State.EMPTY
    group.generation = group.assigned_generation = value.generation
    for member in group.members.values():
        member.assigned_in = value.generation  # it may have been sent before the restart
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    group.leader = value.leader
    return group


def take_assignments(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Set the assignments of a running group's members to the ones that were just stored."""
    for stored in value.members:
        group.members[stored.member_id].assignment = stored.assignment


def _member_record(
    member: Member, protocol: str | None, assignments: Mapping[str, bytes] | None
) -> MemberMetadata:
    assignment = member.assignment
    if assignments is not None:
        assignment = assignments.get(member.member_id, b"")
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )


def _member(stored: MemberMetadata, protocol: str) -> Member:
    """Return a member of which only the protocol of its generation was stored."""
    rebalance_ms = stored.rebalance_timeout
    return Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=stored.session_timeout if rebalance_ms < 0 else rebalance_ms,
        protocols=((protocol, stored.subscription),),
        assignment=stored.assignment,
    )
