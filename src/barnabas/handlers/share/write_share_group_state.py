"""WriteShareGroupState (key 85), versions 0 and 1: the leader of partitions writes share state.

Version 1 has how many offsets from the start offset on are complete (KIP-1226). The writes of a
request are one batch for each share coordinator, and are committed before the response. Unlike
Kafka, this refuses runs of offsets that overlap, or are in a state that is never stored.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.share.share_state_answers import answer_each
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState, StateBatch, StateUpdate
from barnabas.node.node import Node
from barnabas.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from barnabas.share import shipments
from barnabas.share.share_state_machine import ShareStateMachine


def handle(
    node: Node, request: WriteShareGroupStateRequest, context: RequestContext
) -> Pending[WriteShareGroupStateResponse]:
    """Store what changed in share partitions."""
    results = answer_each(
        node,
        request,
        context,
        item=_item,
        operation=ShareStateMachine.write,
        result=_result,
        refused=_refused,
    )
    return results.map(
        lambda topics: WriteShareGroupStateResponse(
            results=[
                WriteStateResult(topic_id=topic_id, partitions=parts) for topic_id, parts in topics
            ]
        )
    )


def _item(part: PartitionData) -> StateUpdate:
    try:
        batches = [
            StateBatch(
                each.first_offset,
                each.last_offset,
                DeliveryState(each.delivery_state),
                each.delivery_count,
            )
            for each in part.state_batches
        ]
        shipment = shipments.from_message(part.shipment)
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return StateUpdate(
        part.state_epoch,
        part.leader_epoch,
        part.start_offset,
        part.delivery_complete_count,
        batches,
        shipment,
    )


def _result(number: int, _: None) -> PartitionResult:
    return PartitionResult(partition=number)


def _refused(number: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition=number, error_code=error.code, error_message=error.message)
