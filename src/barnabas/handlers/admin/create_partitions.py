"""CreatePartitions (key 37), versions 0 to 3.

A client over its `controller_mutation_rate` gets THROTTLING_QUOTA_EXCEEDED from version 3 on.
"""

from collections import Counter

from barnabas.controller import topic_decisions as topics
from barnabas.controller.placement import leave_out_inactive, racks_of
from barnabas.handlers.admin.mutation_permits import MutationPermits
from barnabas.handlers.authorization import ALTER_TOPIC, denied_among
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

STRICT_FROM = 3


def handle(
    node: Node, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse | Pending[CreatePartitionsResponse]:
    """Grow topics."""
    times = Counter(topic.name for topic in request.topics)
    results, records = [], list[MetadataRecord]()
    partitions = 0
    denied = denied_among(node, context, ALTER_TOPIC, times)
    permits = MutationPermits(
        node, context, strict_from=STRICT_FROM, is_dry_run=request.validate_only
    )
    for topic in request.topics:
        placement = None
        if topic.assignments is not None:
            placement = [assignment.broker_ids for assignment in topic.assignments]
        try:
            if times[topic.name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named more than once"
                )
            if topic.name in denied:
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301
            record = topics.add_partitions(
                node.draft,
                topic.name,
                topic.count,
                placement,
                node.nodes if placement is None else list(map(NodeId, node.draft.brokers)),
                racks_of(node.draft),
            )
            node.check_room(partitions + len(record.replicas))
            permits.take(len(record.replicas))
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
