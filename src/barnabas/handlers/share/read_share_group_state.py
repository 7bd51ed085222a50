"""ReadShareGroupState (key 84), version 0: the leader of partitions reads their share state.

It reads with its leader epoch. A higher epoch than before is stored, and fences earlier leaders.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.share.share_state_answers import answer_each
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.share_state import StoredState
from barnabas.node.node import Node
from barnabas.protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    Shipment,
    ShipmentRun,
    StateBatch,
)
from barnabas.share import shipments
from barnabas.share.share_state_machine import ShareStateMachine


def handle(
    node: Node, request: ReadShareGroupStateRequest, context: RequestContext
) -> Pending[ReadShareGroupStateResponse]:
    """Return the state of share partitions."""
    results = answer_each(
        node,
        request,
        context,
        item=_item,
        operation=ShareStateMachine.read,
        result=_result,
        refused=_refused,
    )
    return results.map(
        lambda topics: ReadShareGroupStateResponse(
            results=[
                ReadStateResult(topic_id=topic_id, partitions=parts) for topic_id, parts in topics
            ]
        )
    )


def _item(part: PartitionData) -> int:
    return part.leader_epoch


def _result(number: int, state: StoredState) -> PartitionResult:
    return PartitionResult(
        partition=number,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[
            StateBatch(
                first_offset=batch.first,
                last_offset=batch.last,
                delivery_state=int(batch.state),
                delivery_count=batch.deliveries,
            )
            for batch in state.batches
        ],
        shipment=shipments.as_message(Shipment, ShipmentRun, state.shipment),
    )


def _refused(number: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition=number, error_code=error.code, error_message=error.message)
