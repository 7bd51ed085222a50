"""The member that sends a request of a share group, and the session that the request belongs to."""

from collections.abc import Callable, Hashable

from barnabas.handlers.authorization import READ_GROUP, require
from barnabas.handlers.context import RequestContext
from barnabas.metadata.features import SHARE_LEVEL
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.node.share.share_sessions import Owner, ShareSession
from barnabas.node.share.sharing import Sharing


def sharing_of(node: Node) -> Sharing:
    """Return the broker's part for share groups; raise `ApiError` if it serves none yet."""
    if node.image.feature_level < SHARE_LEVEL:
        problem = "share groups need the feature level of this release on the whole cluster"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, problem)
    return node.sharing


def owner_of(
    node: Node, context: RequestContext, group_id: str | None, member_id: str | None
) -> Owner:
    """Return the member; raise `ApiError` if the caller may not read the group."""
    if group_id is None or member_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a group and a member are needed")
    require(node, context, READ_GROUP, group_id)
    return Owner(group_id, member_id)


def close_with_connection(node: Node, context: RequestContext, session: ShareSession) -> None:
    """Have the session end when its connection closes."""
    sessions, owner = sharing_of(node).sessions, session.owner
    on_closed = context.caller.remembered.on_closed
    on_closed[owner] = lambda: sessions.close(session)
    session.ended = lambda: _forget(on_closed, owner)


def _forget(on_closed: dict[Hashable, Callable[[], None]], owner: Owner) -> None:
    on_closed.pop(owner, None)
