"""RenewDelegationToken (key 39), versions 1 and 2: a delegation token expires later (KIP-48).

Only its owner and its renewers may send this, until the token has expired. ACLs neither allow nor
deny it.
"""

from barnabas.controller.token_decisions import TokenTimes, renew_token
from barnabas.handlers.authorization import note_change
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.handlers.security.token_callers import check_caller, check_enabled, time_of
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

Response = RenewDelegationTokenResponse


def handle(
    node: Node, request: RenewDelegationTokenRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Renew a token; the response has the time at which it expires."""

    def decide() -> Pending[Response]:
        check_caller(context)
        check_enabled(node)
        security = node.settings.security
        changed = renew_token(
            node.draft,
            node.authentication.signer.find(request.hmac),
            context.caller.principal,
            request.renew_period_ms,
            TokenTimes(
                security.delegation_token_max_lifetime_ms, security.delegation_token_expiry_ms
            ),
            node.timers.wall_ms,
        )
        committed = node.commit([changed], context.now_ms)
        facts = {"token_id": changed.token_id, "owner": changed.owner}
        note_change(node, context, "delegation token renewed", facts)
        return committed.map(lambda _: Response(expiry_timestamp_ms=changed.expires_ms))

    return decided(
        decide, lambda error: Response(error_code=error.code, expiry_timestamp_ms=time_of(error))
    )
