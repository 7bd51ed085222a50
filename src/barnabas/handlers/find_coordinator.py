"""FindCoordinator (key 10), versions 0 to 6; several keys at once from version 4 (KIP-699).

The internal topic is made on the first call, and the answer waits for it: Kafka has clients ask
again instead. Share groups (key type 2) are refused until there are some.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION = 0, 1
SEVERAL_FROM = 4
NOWHERE = -1


def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Pending[FindCoordinatorResponse]:
    """Name this broker, once it can coordinate."""
    several = context.version >= SEVERAL_FROM
    keys = request.coordinator_keys if several else [request.key]
    try:
        ready = _coordinators(node, request.key_type, context.now_ms)
    except ApiError as error:
        return _answer(several, [_refused(key, retriable(error.code)) for key in keys])
    return ready.map(lambda _: _answer(several, [_here(node, key) for key in keys]))


def _coordinators(node: Node, key_type: int, now_ms: int) -> Pending[bool]:
    if key_type == GROUP:
        return node.coordinators.groups.ensure(now_ms)
    if key_type == TRANSACTION:
        return node.coordinators.transactions.ensure(now_ms)
    raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")


def _here(node: Node, key: str) -> Coordinator:
    host, port = node.advertised
    return Coordinator(key=key, node_id=node.node_id, host=host, port=port)


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
