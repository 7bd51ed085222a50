"""DeleteTopics (key 20), versions 1 to 6; by id from 6.

A client over its `controller_mutation_rate` gets THROTTLING_QUOTA_EXCEEDED from version 5 on.
"""

from collections import Counter
from collections.abc import Sequence

from barnabas.controller import topic_decisions as topics
from barnabas.handlers.admin.mutation_permits import MutationPermits
from barnabas.handlers.answers import in_parts, once
from barnabas.handlers.authorization import (
    DELETE_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    is_denied,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.metadata.metadata_records import MetadataRecord, TopicDeleted
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DECIDED_AN_EVENT = 20
STRICT_FROM = 5
"""How many topics are decided on within one event, and committed together."""

Results = list[DeletableTopicResult]


def handle(
    node: Node, request: DeleteTopicsRequest, context: RequestContext
) -> Pending[DeleteTopicsResponse]:
    """Delete topics; their files are removed in the background."""
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    deleted = in_parts(node, _parts(node, wanted, context), context)
    return deleted.map(lambda results: DeleteTopicsResponse(responses=results))


def _parts(
    node: Node, wanted: Sequence[DeleteTopicState], context: RequestContext
) -> Steps[list[Results | Pending[Results]]]:
    """Decide on some topics within one event; each part is committed on its own."""
    named = Counter(_name_or_none(node, topic) for topic in wanted)
    may_delete_all = not is_hidden(node, context, DELETE_CLUSTER)
    permits = MutationPermits(node, context, strict_from=STRICT_FROM)
    parts: list[Results | Pending[Results]] = []
    for start in range(0, len(wanted), DECIDED_AN_EVENT):
        if start:
            yield None
        some = wanted[start : start + DECIDED_AN_EVENT]
        asking = None if may_delete_all else context
        results, records = _decide_on(node, some, named, permits, asking)
        try:  # a refusal may depend on proposed records, and waits until they are committed
            committed = node.commit(records, context.now_ms)
        except ApiError as error:
            parts.append([_refused(topic, error) for topic in some])
        else:
            parts.append(once(committed, results))
    return parts


def _decide_on(
    node: Node,
    wanted: Sequence[DeleteTopicState],
    named: Counter[str | None],
    permits: MutationPermits,
    context: RequestContext | None,
) -> tuple[Results, list[MetadataRecord]]:
    """Decide on some topics; with the context of a caller that may not delete all of them."""
    results, records = Results(), list[MetadataRecord]()
    for topic in wanted:
        try:
            name = _name(node, topic)
            # Checked first: other errors have the name of a topic that is named by id.
            if context is not None and _is_denied(node, context, topic, name):
                results.append(_denied(node, context, topic, name))
                continue
            if named[name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {name!r} is named more than once"
                )
            record = _decide(node, name)
            permits.take(len(node.draft.topics[name].partitions))
            records.append(record)
            topic_id = node.draft.topics[name].topic_id
            results.append(DeletableTopicResult(name=name, topic_id=topic_id))
        except ApiError as error:
            results.append(_refused(topic, error))
    return results, records


def _is_denied(node: Node, context: RequestContext, topic: DeleteTopicState, name: str) -> bool:
    """Tell whether a caller may not delete a topic; check first whether it may describe it."""
    if topic.name is not None and is_denied(node, context, DESCRIBE_TOPIC, name):
        return True
    return name in node.draft.topics and is_denied(node, context, DELETE_TOPIC, name)


def _denied(
    node: Node, context: RequestContext, topic: DeleteTopicState, name: str
) -> DeletableTopicResult:
    """Return the refusal; without the name of a topic that is named by id and must stay hidden."""
    hidden = is_hidden(node, context, DESCRIBE_TOPIC, name)
    return DeletableTopicResult(
        name=None if topic.name is None and hidden else name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=ErrorCode.TOPIC_AUTHORIZATION_FAILED.name,
    )


def _decide(node: Node, name: str) -> TopicDeleted:
    if not node.settings.broker.delete_topics:
        raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "delete_topics is off in the settings")
    if name in node.coordinators.topics and name in node.draft.topics:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{name} holds what groups or transactions must not lose; "
            "delete groups and their offsets instead",
        )
    return topics.delete_topic(node.draft, name)


def _refused(topic: DeleteTopicState, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=error.code,
        error_message=error.message,
    )


def _name_or_none(node: Node, topic: DeleteTopicState) -> str | None:
    try:
        return _name(node, topic)
    except ApiError:
        return None


def _name(node: Node, topic: DeleteTopicState) -> str:
    if topic.name is not None:
        if topic.topic_id != NO_TOPIC_ID:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "a topic is named by its name and its id; name one"
            )
        return topic.name
    if topic.topic_id == NO_TOPIC_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is named neither by name nor by id")
    found = node.draft.topic_by_id(topic.topic_id)
    if found is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    return found.name
