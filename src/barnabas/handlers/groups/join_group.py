"""JoinGroup (key 11), versions 0 to 9: become a member of a classic group, or stay one.

A known member id from version 4 (KIP-394), static members from 5 (KIP-345), the protocol type in
the answer from 7 (KIP-559), a reason from 8 (KIP-800), which is ignored, skipping the
assignment from 9 (KIP-814).

Deviations: a request that is refused never leaves an empty group behind. A second JoinGroup of
a member whose first one is pending completes the first with REBALANCE_IN_PROGRESS, which Kafka
drops. Classic members cannot join a `consumer` group that has members (Kafka's online
migration): INCONSISTENT_GROUP_PROTOCOL. A static member that rejoins is shown with its new
client id and host. A member id that was given to a dynamic member is UNKNOWN_MEMBER_ID with an
instance id, not a server error.
"""

from barnabas.groups.classic.answers import join_refused
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group, caller_of
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

NO_PROTOCOL_FROM = 7
"""Before, no protocol is an empty name."""


def handle(
    node: Node, request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    """Let a client join; the answer waits until the group has a new generation."""
    caller = caller_of(context)

    def refused(code: ErrorCode) -> JoinGroupResponse:
        return join_refused(code, request.member_id)

    def fit(response: JoinGroupResponse) -> JoinGroupResponse:
        if context.version < NO_PROTOCOL_FROM and response.protocol_name is None:
            response.protocol_name = ""
        return response

    if not request.group_id:
        return fit(refused(ErrorCode.INVALID_GROUP_ID))
    answer = ask_group(
        node, request.group_id, lambda machine: machine.classic.join(request, caller), refused
    )
    return answer.map(fit) if isinstance(answer, Pending) else fit(answer)
