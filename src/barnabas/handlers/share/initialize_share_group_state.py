"""InitializeShareGroupState (key 83), version 0: a group coordinator begins share partitions anew.

A later initialization needs the same state epoch or a higher one.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.share.share_state_answers import answer_each
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from barnabas.share.share_state_machine import ShareStateMachine


def handle(
    node: Node, request: InitializeShareGroupStateRequest, context: RequestContext
) -> Pending[InitializeShareGroupStateResponse]:
    """Write the first state of share partitions."""
    results = answer_each(
        node,
        request,
        context,
        item=_item,
        operation=ShareStateMachine.initialize,
        result=_result,
        refused=_refused,
    )
    return results.map(
        lambda topics: InitializeShareGroupStateResponse(
            results=[
                InitializeStateResult(topic_id=topic_id, partitions=parts)
                for topic_id, parts in topics
            ]
        )
    )


def _item(part: PartitionData) -> tuple[int, int]:
    return part.state_epoch, part.start_offset


def _result(number: int, _: None) -> PartitionResult:
    return PartitionResult(partition=number)


def _refused(number: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition=number, error_code=error.code, error_message=error.message)
