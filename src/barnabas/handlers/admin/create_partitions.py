"""CreatePartitions (key 37), versions 0 to 3."""

from collections import Counter

from barnabas.controller import topic_decisions as topics
from barnabas.controller.placement import leave_out_inactive, racks_of
from barnabas.handlers.context import RequestContext
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(
    node: Node, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse | Pending[CreatePartitionsResponse]:
    """Grow topics."""
    times = Counter(topic.name for topic in request.topics)
    results, records = [], list[MetadataRecord]()
    partitions = 0
    for topic in request.topics:
        placement = None
        if topic.assignments is not None:
            placement = [assignment.broker_ids for assignment in topic.assignments]
        try:
            if times[topic.name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named more than once"
                )
            record = topics.add_partitions(
                node.draft,
                topic.name,
                topic.count,
                placement,
                node.nodes if placement is None else list(map(NodeId, node.draft.brokers)),
                racks_of(node.draft),
            )
            node.check_room(partitions + len(record.replicas))
        except ApiError as error:
            results.append(_refused(topic.name, error))
            continue
        partitions += len(record.replicas)
        records.append(record)
        first = topic.count - len(record.replicas)
        records += leave_out_inactive(node.draft, record.topic_id, record.replicas, first)
        results.append(CreatePartitionsTopicResult(name=topic.name))
    response = CreatePartitionsResponse(results=results)
    if request.validate_only or not records:
        return response
    try:
        return node.commit(records, context.now_ms).map(lambda _: response)
    except ApiError as error:
        return CreatePartitionsResponse(results=[_refused(t.name, error) for t in request.topics])


def _refused(name: str, error: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
