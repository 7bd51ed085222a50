"""Validates a ShareGroupHeartbeat, and reads its fields."""

from dataclasses import replace

from barnabas.groups.consumer.requests import check_text
from barnabas.groups.share.share_member import JOINING, LEFT, ShareProfile
from barnabas.model.coordination import Caller
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raise `ApiError` for an invalid request."""
    check_text(request.member_id, "MemberId")
    check_text(request.group_id, "GroupId")
    check_text(request.rack_id, "RackId")
    if request.member_epoch == JOINING and not request.subscribed_topic_names:
        message = "SubscribedTopicNames must have a topic in the first request."
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    if request.member_epoch < LEFT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def updated(
    known: ShareProfile, request: ShareGroupHeartbeatRequest, caller: Caller
) -> ShareProfile:
    """Return the member's updated subscription; fields that it does not send stay the same."""
    names = request.subscribed_topic_names
    profile = replace(
        known,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        names=known.names if names is None else frozenset(names),
        client_id=caller.client_id,
        client_host=caller.host,
    )
    return known if profile == known else profile
