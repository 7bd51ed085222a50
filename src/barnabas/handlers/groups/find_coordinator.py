"""FindCoordinator (key 10), versions 0 to 6; several keys at once from version 4 (KIP-699).

The first call creates the internal topic, and its response waits for that; in Kafka clients retry
instead. The coordinator is the leader of a key's partition in this broker's metadata. There is none
while the partition has no leader, or while this broker leads it and has not loaded it. A consumer
without a group (`NO_GROUP`) has no coordinator, and no topic is created for it.

Brokers ask for the coordinators of share partitions from version 6 on (key type 2, KIP-932), by
keys `group:topic id:partition`.
"""

from barnabas.handlers.authorization import (
    CLUSTER_ACTION,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    denied_among,
    is_denied,
)
from barnabas.handlers.client_endpoints import endpoint_on, own_endpoint
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.callers import Listener
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_GROUP
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.node.coordination.coordinator_kinds import GROUP_KEY, SHARE_KEY, TRANSACTION_KEY
from barnabas.node.coordination.coordinators import AnyCoordinators
from barnabas.node.node import Node
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

SEVERAL_FROM = 4
SHARE_FROM = 6
NOWHERE = -1
RIGHTS = {
    GROUP_KEY: (DESCRIBE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION_KEY: (
        DESCRIBE_TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}
"""By type of key: the permission that a caller needs for each key, and the error without it."""


def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Pending[FindCoordinatorResponse]:
    """Name the brokers that coordinate."""
    several = context.version >= SEVERAL_FROM
    keys = request.coordinator_keys if several else [request.key]

    def refused(code: ErrorCode) -> FindCoordinatorResponse:
        return _answer(several, [_refused(key, retriable(code)) for key in keys])

    if request.key_type == SHARE_KEY and is_denied(node, context, CLUSTER_ACTION):
        return refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.key_type == SHARE_KEY and context.version < SHARE_FROM:
        return refused(ErrorCode.INVALID_REQUEST)
    denied = _denied(node, request.key_type, keys, context)
    if denied and len(denied) == len(set(keys)):  # no topic is created for them
        return _answer(several, [denied[key] for key in keys])
    if request.key_type == GROUP_KEY and set(keys) == {NO_GROUP}:
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        coordinators = _coordinators(node, request.key_type)
        ready = coordinators.ensure(context.now_ms)
    except ApiError as error:
        return refused(error.code)
    listener = context.caller.listener
    found = ready.map(
        lambda _: _answer(
            several, [denied.get(key) or _find(node, coordinators, key, listener) for key in keys]
        )
    )
    return found.or_refused(refused)


def _denied(
    node: Node, key_type: int, keys: list[str], context: RequestContext
) -> dict[str, Coordinator]:
    """Return the answers for keys that the caller may not describe, or that are invalid."""
    if key_type == SHARE_KEY:
        invalid = [key for key in keys if SharePartitionKey.parse(key) is None]
        return {key: _refused(key, ErrorCode.INVALID_REQUEST) for key in invalid}
    if key_type not in RIGHTS:
        return {}
    wanted, code = RIGHTS[key_type]
    return {key: _refused(key, code) for key in denied_among(node, context, wanted, keys)}


def _coordinators(node: Node, key_type: int) -> AnyCoordinators:
    found = node.coordinators.by_key_type.get(key_type)
    if found is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    return found


def _find(node: Node, coordinators: AnyCoordinators, key: str, listener: Listener) -> Coordinator:
    try:
        broker = coordinators.broker_for(key)
    except ApiError as error:
        return _refused(key, error.code)
    if broker == node.node_id:
        opened = node.by_topic_name.get(coordinators.topic) or {}
        if coordinators.partition_for(key) not in opened:
            return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        endpoint = own_endpoint(node, listener)
    else:
        registered = node.image.brokers.get(broker)
        if registered is None or registered.fenced:
            return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        endpoint = endpoint_on(node, registered, listener)
    if endpoint is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    host, port = endpoint
    return Coordinator(key=key, node_id=broker, host=host, port=port)


def _refused(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key, node_id=NOWHERE, port=NOWHERE, error_code=code, error_message=code.name
    )


def _answer(several: bool, found: list[Coordinator]) -> FindCoordinatorResponse:
    if several:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
