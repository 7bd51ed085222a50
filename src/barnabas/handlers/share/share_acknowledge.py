"""ShareAcknowledge (key 79), versions 1 and 2; members ask for more time from version 2 on.

A response waits until the share coordinator has stored the acknowledgements. All those of one
partition are accepted, or none. With the final epoch, or when the connection closes, the session
ends: the member gives back what it still holds.
"""

from collections import defaultdict

from barnabas.handlers.context import RequestContext
from barnabas.handlers.leadership import endpoints_of, leader_instead
from barnabas.handlers.share.acknowledging import Results, acknowledge
from barnabas.handlers.share.share_owner import owner_of, sharing_of
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.node.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from barnabas.protocol.current_leader import Leader
from barnabas.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


def handle(
    node: Node, request: ShareAcknowledgeRequest, context: RequestContext
) -> ShareAcknowledgeResponse | Pending[ShareAcknowledgeResponse]:
    """Store acknowledgements."""
    try:
        session = _session(node, request, context)
    except ApiError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message or None)
    results = acknowledge(node, context, session.owner, request.topics)

    def respond(found: Results) -> ShareAcknowledgeResponse:
        if request.share_session_epoch == FINAL_EPOCH:
            sharing_of(node).sessions.close(session)
        return _response(node, context, session, found)

    return results.map(respond)


def _session(node: Node, request: ShareAcknowledgeRequest, context: RequestContext) -> ShareSession:
    sessions = sharing_of(node).sessions
    owner = owner_of(node, context, request.group_id, request.member_id)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a session begins with ShareFetch")
    if request.share_session_epoch == FINAL_EPOCH:
        return sessions.find(owner)
    return sessions.resume(owner, request.share_session_epoch)


def _response(
    node: Node, context: RequestContext, session: ShareSession, results: Results
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, list[PartitionData]] = defaultdict(list)
    leaders: list[Leader] = []
    for place, code in results.items():
        data = PartitionData(partition_index=place.partition, error_code=code)
        leader = leader_instead(node, place.topic_id, place.partition, code)
        if leader is not None:
            leaders.append(leader)
            data.current_leader = LeaderIdAndEpoch(
                leader_id=leader.node_id, leader_epoch=leader.epoch
            )
        topics[place.topic_id].append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=sharing_of(node).rules(session.owner.group_id).lock_duration_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=[
            NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in endpoints_of(node, leaders, context.caller.listener)
        ],
    )
