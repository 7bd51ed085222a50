"""LeaveGroup (key 13), versions 0 to 5: members leave a classic group or are removed.

Several at once from version 3, and static members by their instance id alone, as
`kafka-consumer-groups` and Kafka Streams remove them (KIP-345); reasons from 5 (KIP-800), which
are ignored.

Deviation: a client that received a member id and leaves before using it causes no rebalance.
"""

from barnabas.handlers.authorization import READ_GROUP, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

SEVERAL_FROM = 3


def handle(
    node: Node, request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
    """Remove members."""
    several = context.version >= SEVERAL_FROM
    leavers = request.members if several else [MemberIdentity(member_id=request.member_id)]

    def refused(code: ErrorCode) -> LeaveGroupResponse:
        return _refused(code, leavers)

    if not request.group_id:
        return refused(ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answer = ask_group(
        node,
        request.group_id,
        lambda machine: machine.classic.leave(request.group_id, leavers),
        refused,
    )
    if several:
        return answer
    return answer.map(_for_one) if isinstance(answer, Pending) else _for_one(answer)


def _refused(code: ErrorCode, leavers: list[MemberIdentity]) -> LeaveGroupResponse:
    """Answer for all members; without a group each of them is an unknown member."""
    if code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=code)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=leaver.member_id,
                group_instance_id=leaver.group_instance_id,
                error_code=code,
            )
            for leaver in leavers
        ]
    )


def _for_one(answer: LeaveGroupResponse) -> LeaveGroupResponse:
    """Return a response for a version that has one member only."""
    codes = (answer.error_code, *(member.error_code for member in answer.members))
    return LeaveGroupResponse(error_code=next(filter(None, codes), ErrorCode.NONE))
