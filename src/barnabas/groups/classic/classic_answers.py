"""Error responses for members."""

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse


def join_refused(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    """Return the answer to a client that cannot join."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """Return the answer to a member that gets no assignment."""
    return SyncGroupResponse(error_code=code)
