"""CreateDelegationToken (key 38), versions 1 to 3: a token to authenticate as its owner (KIP-48,
KIP-373).

A client needs no permission for a token of its own. A token for another user needs CREATE_TOKENS on
that user.

Deviations: an owner that is not a user is INVALID_PRINCIPAL_TYPE, which Kafka answers for renewers
as well. A requester has 1000 tokens at most (POLICY_VIOLATION), a token 100 renewers
(INVALID_REQUEST).
"""

from barnabas.controller.token_decisions import TokenTimes, TokenWanted, create_token
from barnabas.handlers.authorization import CREATE_TOKENS_USER, note_change, require
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.handlers.security.token_callers import (
    NEVER_MS,
    REQUESTER_FROM,
    check_caller,
    check_enabled,
)
from barnabas.model.callers import Principal
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


def handle(
    node: Node, request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse | Pending[CreateDelegationTokenResponse]:
    """Create a token; the response has its HMAC."""
    requester = context.caller.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)

    def decide() -> Pending[CreateDelegationTokenResponse]:
        check_caller(context)
        if owner != requester:
            require(node, context, CREATE_TOKENS_USER, str(owner))
        check_enabled(node)
        authentication = node.authentication
        wanted = TokenWanted(
            authentication.signer.new_id(authentication.random_bytes),
            owner,
            requester,
            [Principal(each.principal_type, each.principal_name) for each in request.renewers],
            request.max_lifetime_ms,
        )
        security = node.settings.security
        times = TokenTimes(
            security.delegation_token_max_lifetime_ms, security.delegation_token_expiry_ms
        )
        made = create_token(node.draft, wanted, times, node.timers.wall_ms)
        response = _of(owner, requester, context.version)
        response.issue_timestamp_ms = made.issued_ms
        response.expiry_timestamp_ms = made.expires_ms
        response.max_timestamp_ms = made.ends_ms
        response.token_id = made.token_id
        response.hmac = authentication.signer.hmac_of(made.token_id)
        committed = node.commit([made], context.now_ms)
        facts = {"token_id": made.token_id, "owner": made.owner, "renewers": made.renewers}
        note_change(node, context, "delegation token created", facts)
        return committed.map(lambda _: response)

    def refuse(error: ApiError) -> CreateDelegationTokenResponse:
        response = _of(owner, requester, context.version)
        response.error_code = error.code
        return response

    return decided(decide, refuse)


def _of(owner: Principal, requester: Principal, version: int) -> CreateDelegationTokenResponse:
    names_requester = version >= REQUESTER_FROM
    return CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind if names_requester else "",
        token_requester_principal_name=requester.name if names_requester else "",
        issue_timestamp_ms=NEVER_MS,
        expiry_timestamp_ms=NEVER_MS,
        max_timestamp_ms=NEVER_MS,
    )
