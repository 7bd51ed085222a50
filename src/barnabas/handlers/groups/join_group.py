"""JoinGroup (key 11), versions 0 to 9: a client joins a classic group, or joins it again.

A known member id from version 4 (KIP-394), static members from 5 (KIP-345), the protocol type in
the answer from 7 (KIP-559), a reason from 8 (KIP-800), which is ignored, skipping the
assignment from 9 (KIP-814).

Deviations: a refused request never creates an empty group. A second JoinGroup of a member whose
first one is pending completes the first with REBALANCE_IN_PROGRESS; Kafka never answers the first.
Classic members cannot join a `consumer` group that has members (Kafka's online migration):
INCONSISTENT_GROUP_PROTOCOL. A static member that rejoins is shown with its new client id and host.
The member id of a dynamic member together with an instance id is UNKNOWN_MEMBER_ID, not a server
error.
"""

from barnabas.groups.classic.classic_answers import join_refused
from barnabas.handlers.authorization import READ_GROUP, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group, caller_of
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

NO_PROTOCOL_FROM = 7
"""In earlier versions an empty name means that there is no protocol."""


def handle(
    node: Node, request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    """Let a client join; the answer waits until the group has a new generation."""
    caller = caller_of(context)
    context.asked_wait_ms = max(request.rebalance_timeout_ms, request.session_timeout_ms)

    def refused(code: ErrorCode) -> JoinGroupResponse:
        return join_refused(code, request.member_id)

    def fit(response: JoinGroupResponse) -> JoinGroupResponse:
        if context.version < NO_PROTOCOL_FROM and response.protocol_name is None:
            response.protocol_name = ""
        return response

    if not request.group_id:
        return fit(refused(ErrorCode.INVALID_GROUP_ID))
    if is_denied(node, context, READ_GROUP, request.group_id):
        return fit(refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    answer = ask_group(
        node, request.group_id, lambda machine: machine.classic.join(request, caller), refused
    )
    return answer.map(fit) if isinstance(answer, Pending) else fit(answer)
