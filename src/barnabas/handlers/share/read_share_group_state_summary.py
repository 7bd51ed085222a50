"""ReadShareGroupStateSummary (key 87), versions 0 and 1: what lag is computed from.

It fences no leader, whatever leader epoch the request has. Version 1 has how many offsets are
complete (KIP-1226). A share partition without state has start offset -1.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.share.share_state_answers import answer_each
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.share_state import StateSummary
from barnabas.node.node import Node
from barnabas.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from barnabas.share.share_state_machine import ShareStateMachine


def handle(
    node: Node, request: ReadShareGroupStateSummaryRequest, context: RequestContext
) -> Pending[ReadShareGroupStateSummaryResponse]:
    """Return summaries of share partitions."""
    results = answer_each(
        node,
        request,
        context,
        item=_item,
        operation=ShareStateMachine.summarize,
        result=_result,
        refused=_refused,
    )
    return results.map(
        lambda topics: ReadShareGroupStateSummaryResponse(
            results=[
                ReadStateSummaryResult(topic_id=topic_id, partitions=parts)
                for topic_id, parts in topics
            ]
        )
    )


def _item(part: PartitionData) -> int:
    return part.leader_epoch


def _result(number: int, summary: StateSummary) -> PartitionResult:
    return PartitionResult(
        partition=number,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.complete_count,
    )


def _refused(number: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition=number, error_code=error.code, error_message=error.message)
