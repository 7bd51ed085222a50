"""DescribeDelegationToken (key 41), versions 1 to 3: delegation tokens with their HMACs (KIP-48).

A client sees the tokens that it owns or may renew, those that it may DESCRIBE, and those of users
whose tokens it may describe (DESCRIBE_TOKENS, KIP-373). As in Kafka, it can use the HMAC of each.
Every broker answers from its own metadata. Expired tokens are in the answer until the controller
removes them.
"""

from barnabas.controller.token_decisions import may_renew
from barnabas.handlers.answers import in_steps
from barnabas.handlers.authorization import DESCRIBE_TOKEN, DESCRIBE_TOKENS_USER, is_hidden
from barnabas.handlers.context import RequestContext
from barnabas.handlers.security.token_callers import (
    REQUESTER_FROM,
    check_caller,
    check_enabled,
    parts_of,
)
from barnabas.metadata.security_records import DelegationTokenChanged
from barnabas.model.callers import Principal
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps, Work
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

Response = DescribeDelegationTokenResponse
LOOK_UNITS, TOKEN_UNITS = 4, 40
"""The cost of looking at a token, and of describing it; see `EVENT_UNITS`."""


def handle(
    node: Node, request: DescribeDelegationTokenRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Describe the tokens of some owners, or of all."""
    try:
        check_caller(context)
        check_enabled(node)
    except ApiError as error:
        return Response(error_code=error.code)
    return in_steps(node, _described(node, request, context), context)


def _described(
    node: Node, request: DescribeDelegationTokenRequest, context: RequestContext
) -> Steps[Response]:
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    found, work = [], Work()
    for token in list(node.image.security.tokens.values()):
        is_shown = owners is None or may_renew(token, owners)
        if is_shown and _is_visible(node, token, context):
            found.append(_described_token(node, token, context.version))
            if work.spend(TOKEN_UNITS):
                yield None
        elif work.spend(LOOK_UNITS):
            yield None
    return Response(tokens=found)


def _is_visible(node: Node, token: DelegationTokenChanged, context: RequestContext) -> bool:
    return (
        may_renew(token, (str(context.caller.principal),))
        or not is_hidden(node, context, DESCRIBE_TOKEN, token.token_id)
        or not is_hidden(node, context, DESCRIBE_TOKENS_USER, token.owner)
    )


def _described_token(
    node: Node, token: DelegationTokenChanged, version: int
) -> DescribedDelegationToken:
    owner = parts_of(token.owner)
    requester = parts_of(token.requester) if version >= REQUESTER_FROM else Principal("", "")
    renewers = [parts_of(each) for each in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.ends_ms,
        token_id=token.token_id,
        hmac=node.authentication.signer.hmac_of(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.kind, principal_name=each.name)
            for each in renewers
        ],
    )
