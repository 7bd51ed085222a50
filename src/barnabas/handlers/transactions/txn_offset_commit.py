"""TxnOffsetCommit (key 28), versions 0 to 5: offsets that take effect once a transaction commits.

The first commit of a transaction to a coordinator asks the transaction's own coordinator whether
the producer may write there (KIP-890); version 5 also adds the partition to the transaction;
for older versions AddOffsetsToTxn did. Version 3 names the member (KIP-447).
"""

from barnabas.groups.group_machine import GroupMachine
from barnabas.handlers.answers import then
from barnabas.handlers.authorization import (
    READ_GROUP,
    READ_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    denied_among,
    is_denied,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group, caller_of, retriable
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.endings import Watch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.coordination.node_transactions import Admitted
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Response = TxnOffsetCommitResponse

KNOWS_LOADING_FROM = 2
KNOWS_ABORTABLE_FROM = 4
ADDS_FROM = 5

FOR_CLIENTS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""The errors for clients when the coordinators cannot reach each other, as in Kafka."""


def handle(
    node: Node, request: TxnOffsetCommitRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Store the offsets of a group, if the producer is admitted and may."""
    if node.authorizer is None:
        return _store(node, request, context)
    if is_denied(node, context, WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return _refused(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return _refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    every = request.topics
    denied = denied_among(node, context, READ_TOPIC, (topic.name for topic in every))
    request.topics = [topic for topic in every if topic.name not in denied]

    def complete(response: Response) -> Response:
        """Answer all topics, in the order of the request."""
        stored = iter(response.topics)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics = [
            _refused_topic(topic, code) if topic.name in denied else next(stored) for topic in every
        ]
        return response

    if denied and not request.topics:
        return complete(Response())
    answer = _store(node, request, context)
    return answer.map(complete) if isinstance(answer, Pending) else complete(answer)


def _store(
    node: Node, request: TxnOffsetCommitRequest, context: RequestContext
) -> Response | Pending[Response]:
    if not request.group_id:
        return _refused(request, ErrorCode.INVALID_GROUP_ID)
    if not _any_partition_exists(node, request):
        return _refused(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        if _is_writing(shard.partition, producer):
            return _commit(node, request, context)
        return _admit(node, shard, producer, request, context)
    except ApiError as error:
        return _refused(request, _error_for_client(error.code, context.version))


def _admit(
    node: Node,
    shard: Shard[GroupMachine],
    producer: ProducerIdAndEpoch,
    request: TxnOffsetCommitRequest,
    context: RequestContext,
) -> Pending[Response]:
    """Commit once the transaction's coordinator has admitted the producer."""
    partition = shard.partition.name
    adds = context.version >= ADDS_FROM
    admitted = node.transactions.admit(request.transactional_id, producer, [partition], adds=adds)
    endings = shard.machine.offsets.endings
    watch = endings.watch(*producer)

    def go_on(codes: Admitted) -> Response | Pending[Response]:
        endings.release(watch)
        # Another broker may have written the end of the transaction, which this watch did not see.
        code = ErrorCode.NOT_COORDINATOR if shard.is_closed else _verdict(codes[partition], watch)
        if code is ErrorCode.NONE:
            return _commit(node, request, context)
        return _refused(request, _error_for_client(code, context.version))

    return then(admitted, go_on)


def _verdict(admitted: ErrorCode, watch: Watch[int]) -> ErrorCode:
    if admitted is ErrorCode.NONE and watch.ended:
        return ErrorCode.INVALID_TXN_STATE
    return admitted


def _commit(
    node: Node, request: TxnOffsetCommitRequest, context: RequestContext
) -> Response | Pending[Response]:
    caller = caller_of(context)
    return ask_group(
        node,
        request.group_id,
        lambda machine: machine.offsets.commit_in_transaction(request, caller),
        lambda code: _refused(request, _error_for_client(code, context.version)),
    )


def _is_writing(partition: Partition, producer: ProducerIdAndEpoch) -> bool:
    """Tell whether the producer was admitted for its open transaction before."""
    if partition.log.producers.open_transaction(producer.producer_id) is None:
        return False
    return partition.log.producers.by_id[producer.producer_id].epoch == producer.producer_epoch


def _any_partition_exists(node: Node, request: TxnOffsetCommitRequest) -> bool:
    for topic in request.topics:
        found = node.image.topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        if any(0 <= part.partition_index < count for part in topic.partitions):
            return True
    return False


def _refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> Response:
    return Response(topics=[_refused_topic(topic, code) for topic in request.topics])


def _refused_topic(
    topic: TxnOffsetCommitRequestTopic, code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )


def _error_for_client(code: ErrorCode, version: int) -> ErrorCode:
    """Return an error that a client of a version knows."""
    answered = retriable(FOR_CLIENTS.get(code, code))
    if answered is ErrorCode.TRANSACTION_ABORTABLE and version < KNOWS_ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    if answered is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < KNOWS_LOADING_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return answered
