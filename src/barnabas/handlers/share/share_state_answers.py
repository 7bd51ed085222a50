"""Answers requests of brokers to share coordinators: all name one group, and list partitions.

The share partitions of one coordinator go into one operation. Kafka runs one operation for each
share partition; here the writes of a request are one batch for each coordinator. A share partition
that a request names twice is refused, and the rest is not affected. As in Kafka, there are no
results for a group without an id.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.handlers.authorization import CLUSTER_ACTION, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.node.node import Node
from barnabas.node.share.share_coordinators import Operation, run_on_each
from barnabas.protocol.message import Message
from barnabas.share.share_state_machine import Results

Q = TypeVar("Q")
R = TypeVar("R")
P = TypeVar("P", bound=Message)
T = TypeVar("T")

Listed = tuple[bytes, list[P]]
"""A topic's id, and the results of its partitions."""


def answer_each(
    node: Node,
    request: Any,  # noqa: ANN401 - of any of the APIs
    context: RequestContext,
    *,
    item: Callable[[Any], Q],
    operation: Operation[Q, R],
    result: Callable[[int, R], P],
    refused: Callable[[int, ApiError], P],
) -> Pending[list[Listed[P]]]:
    """Run an operation on all share partitions of a request; return results as it lists them.

    `item` reads what the request says about a partition.
    """
    items: dict[SharePartitionKey, Q] = {}
    refusals: Results[R] = {}
    refusal = _refusal(node, context)
    if refusal is None and not request.group_id:
        return Pending.of([])
    for key, part in _partitions(request):
        if refusal is not None:
            refusals[key] = refusal
        elif key in items:
            refusals[key] = ApiError(ErrorCode.INVALID_REQUEST, "the partition is named twice")
            del items[key]
        elif key not in refusals:
            try:
                items[key] = item(part)
            except ApiError as error:
                refusals[key] = error

    def listed(results: Results[R]) -> list[Listed[P]]:
        found = {**results, **refusals}

        def part_of(key: SharePartitionKey) -> P:
            outcome = found[key]
            if isinstance(outcome, ApiError):
                return refused(key.partition, _for_client(outcome))
            return result(key.partition, outcome)

        return [
            (topic.topic_id, [part_of(_key(request, topic, each)) for each in topic.partitions])
            for topic in request.topics
        ]

    return run_on_each(node.coordinators.shares, items, operation).map(listed)


def _refusal(node: Node, context: RequestContext) -> ApiError | None:
    if is_denied(node, context, CLUSTER_ACTION):
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return None


def _partitions(request: Any) -> Sequence[tuple[SharePartitionKey, Any]]:  # noqa: ANN401
    return [
        (_key(request, topic, part), part) for topic in request.topics for part in topic.partitions
    ]


def _key(request: Any, topic: Any, part: Any) -> SharePartitionKey:  # noqa: ANN401
    return SharePartitionKey(request.group_id, TopicId(bytes(topic.topic_id)), part.partition)


def _for_client(error: ApiError) -> ApiError:
    return ApiError(retriable(error.code), error.message or error.code.name)
