"""DescribeUserScramCredentials (key 50), version 0: which users have which mechanisms (KIP-554).

Every broker answers from its own metadata, as in Kafka. The response has no secrets.
"""

from collections import Counter

from barnabas.handlers.authorization import DESCRIBE_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.metadata.security_image import SecurityImage
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.security.scram_formulas import SCRAM_BY_NAME


def handle(
    node: Node, request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Describe some users, or all of them."""
    if is_denied(node, context, DESCRIBE_CLUSTER):
        return _denied(len(request.users or ()))
    security = node.image.security
    named = Counter(user.name for user in request.users or ())
    users = named or dict.fromkeys(sorted({user for user, _ in security.credentials}))
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_described(security, user, is_doubled=named[user] > 1) for user in users],
    )


def _denied(users: int) -> DescribeUserScramCredentialsResponse:
    """Refuse a request; as in Kafka, the result of each user has no name."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    results = [DescribeUserScramCredentialsResult(error_code=code) for _ in range(users)]
    return DescribeUserScramCredentialsResponse(error_code=code, results=results)


def _described(
    security: SecurityImage, user: str, *, is_doubled: bool
) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user, error_message=None)
    if is_doubled:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = f"the request names user {user!r} more than once"
        return result
    found = [
        CredentialInfo(mechanism=mechanism.code, iterations=credential.iterations)
        for mechanism in SCRAM_BY_NAME.values()
        if (credential := security.credentials.get((user, mechanism.name))) is not None
    ]
    if not found:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"user {user!r} has no credential"
    result.credential_infos = sorted(found, key=lambda info: info.mechanism)
    return result
