"""DeleteTopics (key 20), versions 1 to 6; by id from 6."""

from collections import Counter
from collections.abc import Sequence

from barnabas.controller import topic_decisions as topics
from barnabas.handlers.answers import in_parts, once
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
"""So many topics are decided on within one event, and committed together."""

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
    parts: list[Results | Pending[Results]] = []
    for start in range(0, len(wanted), DECIDED_AN_EVENT):
        if start:
            yield None
        some = wanted[start : start + DECIDED_AN_EVENT]
        results, records = _decide_on(node, some, named)
        try:  # a refusal may rest on what is proposed only, and waits for it
            committed = node.commit(records, context.now_ms)
        except ApiError as error:
            parts.append([_refused(topic, error) for topic in some])
        else:
            parts.append(once(committed, results))
    return parts


def _decide_on(
    node: Node, wanted: Sequence[DeleteTopicState], named: Counter[str | None]
) -> tuple[Results, list[MetadataRecord]]:
    results, records = Results(), list[MetadataRecord]()
    for topic in wanted:
        try:
            name = _name(node, topic)
            if named[name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {name!r} is named more than once"
                )
            records.append(_decide(node, name))
            topic_id = node.draft.topics[name].topic_id
            results.append(DeletableTopicResult(name=name, topic_id=topic_id))
        except ApiError as error:
            results.append(_refused(topic, error))
    return results, records


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
