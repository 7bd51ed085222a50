"""AlterUserScramCredentials (key 51), version 0: set and delete the passwords of users (KIP-554).

Deviations: names of more than 1 KiB, and salts that are empty or longer than that, are refused with
UNACCEPTABLE_CREDENTIAL.
"""

from barnabas.handlers.authorization import ALTER_CLUSTER, is_denied, note_change
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

Response = AlterUserScramCredentialsResponse
Result = AlterUserScramCredentialsResult


def handle(
    node: Node, request: AlterUserScramCredentialsRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Change credentials; the response has a result for each user."""
    deleted = [item.name for item in request.deletions]
    users = list(dict.fromkeys([*deleted, *(item.name for item in request.upsertions)]))
    if is_denied(node, context, ALTER_CLUSTER):
        return _refused(users, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        answer = node.controlling.alter_credentials(request)
    except ApiError as error:
        return _refused(users, error.code, error.message)
    note_change(node, context, "credentials altered", {"users": users, "deleted": deleted})
    return answer


def _refused(users: list[str], code: ErrorCode, message: str = "") -> Response:
    results = [Result(user=user, error_code=code, error_message=message) for user in users]
    return Response(results=results)
