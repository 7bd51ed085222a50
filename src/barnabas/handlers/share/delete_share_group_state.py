"""DeleteShareGroupState (key 86), version 0: a group coordinator deletes share state.

Deleting a share partition that has no state succeeds.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.share.share_state_answers import answer_each
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from barnabas.share.share_state_machine import ShareStateMachine


def handle(
    node: Node, request: DeleteShareGroupStateRequest, context: RequestContext
) -> Pending[DeleteShareGroupStateResponse]:
    """Delete the state of share partitions."""
    results = answer_each(
        node,
        request,
        context,
        item=_item,
        operation=ShareStateMachine.delete,
        result=_result,
        refused=_refused,
    )
    return results.map(
        lambda topics: DeleteShareGroupStateResponse(
            results=[
                DeleteStateResult(topic_id=topic_id, partitions=parts) for topic_id, parts in topics
            ]
        )
    )


def _item(_: PartitionData) -> None:
    return None


def _result(number: int, _: None) -> PartitionResult:
    return PartitionResult(partition=number)


def _refused(number: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition=number, error_code=error.code, error_message=error.message)
