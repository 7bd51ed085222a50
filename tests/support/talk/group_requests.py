"""Builds the requests of members of classic groups, with defaults for irrelevant fields."""

from collections.abc import Mapping
from typing import Any

from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def join_group(
    group: str, member_id: str = "", instance_id: str | None = None, **fields: Any
) -> JoinGroupRequest:
    """Return a request to join; `fields` replace those of the request."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"topics")],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def sync_group(
    group: str, joined: Any, assignments: Mapping[str, bytes] | None = None
) -> SyncGroupRequest:
    """Return the SyncGroup request that follows a JoinGroup response."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=content)
            for member_id, content in (assignments or {}).items()
        ],
    )


def heartbeat_of(group: str, joined: Any) -> HeartbeatRequest:
    """Return the heartbeat of a member, given its JoinGroup response."""
    return HeartbeatRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
