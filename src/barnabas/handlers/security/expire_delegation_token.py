"""ExpireDelegationToken (key 40), versions 1 and 2: a delegation token expires soon or at once
(KIP-48).

Only its owner and its renewers may send this. ACLs neither allow nor deny it. Connections that
authenticated with the token end when they would have ended before.
"""

from barnabas.controller.token_decisions import expire_token
from barnabas.handlers.authorization import note_change
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.handlers.security.token_callers import check_caller, check_enabled, time_of
from barnabas.metadata.security_records import DelegationTokenChanged
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

Response = ExpireDelegationTokenResponse


def handle(
    node: Node, request: ExpireDelegationTokenRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Set when a token expires; the response has the time."""

    def decide() -> Pending[Response]:
        check_caller(context)
        check_enabled(node)
        changed = expire_token(
            node.draft,
            node.authentication.signer.find(request.hmac),
            context.caller.principal,
            request.expiry_time_period_ms,
            node.timers.wall_ms,
        )
        expires_ms, what = node.timers.wall_ms, "delegation token removed"
        if isinstance(changed, DelegationTokenChanged):
            expires_ms, what = changed.expires_ms, "delegation token expires"
        committed = node.commit([changed], context.now_ms)
        note_change(node, context, what, {"token_id": changed.token_id})
        return committed.map(lambda _: Response(expiry_timestamp_ms=expires_ms))

    return decided(
        decide, lambda error: Response(error_code=error.code, expiry_timestamp_ms=time_of(error))
    )
