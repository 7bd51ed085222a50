"""DescribeProducers (key 61), version 0 (KIP-664): the producers of a partition.

Operators use it to find hanging transactions: they start long before the end of the log.
"""

from barnabas.controller.topic_decisions import check_name
from barnabas.handlers.authorization import READ_TOPIC, denied_among
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(
    node: Node, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    """Answer each partition on its own."""
    denied = denied_among(node, context, READ_TOPIC, (topic.name for topic in request.topics))
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _denied(partition)
                    if topic.name in denied
                    else _describe(node, topic.name, partition)
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _denied(index: int) -> PartitionResponse:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return PartitionResponse(partition_index=index, error_code=code, error_message=None)


def _describe(node: Node, topic: str, index: int) -> PartitionResponse:
    try:
        check_name(topic)
        producers = node.find(topic, index).log.producers
    except ApiError as error:
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.message
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer_id, producer in producers.by_id.items()
        ],
    )
