"""FindCoordinator (key 10), versions 0 to 6; several keys at once from version 4 (KIP-699).

The internal topic is made on the first call, and the answer waits for it: Kafka has clients ask
again instead. The coordinator is whoever leads the partition of a key, as this broker's metadata
has it; while nobody does, or this broker does and has not opened it, there is none. Share groups
(key type 2) are refused until there are some. A consumer that belongs to no group (`NO_GROUP`) has
no coordinator, and no topic is made for it.
"""

from barnabas.groups.machine import GroupMachine
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_GROUP
from barnabas.model.pending import Pending
from barnabas.node.coordinators import CoordinatorSet
from barnabas.node.node import Node
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.transactions.machine import TransactionMachine

AnyCoordinators = CoordinatorSet[GroupMachine] | CoordinatorSet[TransactionMachine]

GROUP, TRANSACTION = 0, 1
SEVERAL_FROM = 4
NOWHERE = -1


def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Pending[FindCoordinatorResponse]:
    """Name the brokers that coordinate."""
    several = context.version >= SEVERAL_FROM
    keys = request.coordinator_keys if several else [request.key]

    def refused(code: ErrorCode) -> FindCoordinatorResponse:
        return _answer(several, [_refused(key, retriable(code)) for key in keys])

    if request.key_type == GROUP and set(keys) == {NO_GROUP}:
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        coordinators = _coordinators(node, request.key_type)
        ready = coordinators.ensure(context.now_ms)
    except ApiError as error:
        return refused(error.code)
    found = ready.map(lambda _: _answer(several, [_find(node, coordinators, key) for key in keys]))
    return found.or_refused(refused)


def _coordinators(node: Node, key_type: int) -> AnyCoordinators:
    if key_type == GROUP:
        return node.coordinators.groups
    if key_type == TRANSACTION:
        return node.coordinators.transactions
    raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")


def _find(node: Node, coordinators: AnyCoordinators, key: str) -> Coordinator:
    try:
        broker = coordinators.broker_for(key)
    except ApiError as error:
        return _refused(key, error.code)
    if broker == node.node_id:
        opened = node.by_topic_name.get(coordinators.topic) or {}
        if coordinators.partition_for(key) not in opened:
            return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        host, port = node.advertised
        return Coordinator(key=key, node_id=broker, host=host, port=port)
    registered = node.image.brokers.get(broker)
    if registered is None or registered.fenced:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=broker, host=registered.host, port=registered.port)


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
