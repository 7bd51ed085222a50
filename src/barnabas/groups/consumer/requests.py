"""Validates a ConsumerGroupHeartbeat, and reads its fields."""

from collections.abc import Sequence
from dataclasses import replace

from barnabas.groups.consumer.assignors import ASSIGNORS
from barnabas.groups.consumer.consumer_member import JOINING, LEFT, LEFT_FOR_A_WHILE, Profile
from barnabas.groups.consumer.reconciliation import Owned
from barnabas.model.coordination import Caller
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

OWN_MEMBER_ID_FROM = 1
"""From this version on clients generate their member ids (KIP-1082)."""
UNSET_MS = -1
TEXT_BYTES_MAX = 32_767
"""The limit of a string in the key of a record."""


def check(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Raise `ApiError` for an invalid request."""
    epoch = request.member_epoch
    if version >= OWN_MEMBER_ID_FROM or epoch > JOINING or epoch == LEFT:
        check_text(request.member_id, "MemberId")
    check_text(request.group_id, "GroupId")
    check_text(request.instance_id, "InstanceId")
    check_text(request.rack_id, "RackId")
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise _invalid("MemberEpoch is invalid.")
    _check_assignor(request.server_assignor)


def owned_by(request: ConsumerGroupHeartbeatRequest) -> Owned:
    """Return the partitions that a member reports."""
    if request.topic_partitions is None:
        return None
    return {
        (TopicId(topic.topic_id), number)
        for topic in request.topic_partitions
        for number in topic.partitions
    }


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Tell whether a member sends all fields, and so needs a full response."""
    subscribes = request.subscribed_topic_names is not None
    return request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != UNSET_MS
        and (subscribes or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def updated(known: Profile, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Profile:
    """Return the member's updated subscription; fields that it does not send stay the same."""
    names = request.subscribed_topic_names
    timeout_ms = request.rebalance_timeout_ms
    profile = replace(
        known,
        instance_id=_or_known(request.instance_id, known.instance_id),
        rack_id=_or_known(request.rack_id, known.rack_id),
        server_assignor=_or_known(request.server_assignor, known.server_assignor),
        names=known.names if names is None else frozenset(names),
        regex=_or_known(request.subscribed_topic_regex, known.regex) or "",
        rebalance_timeout_ms=known.rebalance_timeout_ms if timeout_ms == UNSET_MS else timeout_ms,
        client_id=caller.client_id,
        client_host=caller.host,
    )
    return known if profile == known else profile


def _or_known(said: str | None, known: str | None) -> str | None:
    return known if said is None else said


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == UNSET_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    said: Sequence[object] = (request.subscribed_topic_names, request.subscribed_topic_regex)
    if all(subscription is None for subscription in said):
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
            "when (re-)joining."
        )


def _check_assignor(name: str | None) -> None:
    if name is not None and name not in ASSIGNORS:
        message = f"ServerAssignor {name} is not supported. Supported assignors: "
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, message + ", ".join(ASSIGNORS) + ".")


def check_text(value: str | None, what: str) -> None:
    """Raise `ApiError` for a text that is empty, or too long for the key of a record."""
    if value is None:
        return
    if not value.strip():
        raise _invalid(f"{what} can't be empty.")
    if len(value.encode()) > TEXT_BYTES_MAX:
        raise _invalid(f"{what} is too long to be stored.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
