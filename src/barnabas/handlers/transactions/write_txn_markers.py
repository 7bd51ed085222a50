"""WriteTxnMarkers (key 27), versions 1 and 2; 2 has the version of the transaction (KIP-1228).

Each marker is written by itself, and the response waits until all of them are committed. Another
broker has more markers waiting behind this response. It receives REQUEST_TIMED_OUT for slow ones,
and retries them. As in Kafka, the response has the results of several markers of one producer
together, and no result for a producer without partitions.
"""

from barnabas.handlers.answers import within
from barnabas.handlers.authorization import ALTER_CLUSTER, CLUSTER_ACTION, is_denied, is_hidden
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.coordination.marker_writing import Marker, write_marker
from barnabas.node.node import Node
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Place = tuple[str, int]

PATIENCE_MS = 2000

NOT_READY = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""The errors of a group's coordinator that a transaction coordinator does not expect."""


def handle(
    node: Node, request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]:
    """Write every marker into every partition; answer when all are committed or refused."""
    if is_hidden(node, context, ALTER_CLUSTER) and is_denied(node, context, CLUSTER_ACTION):
        return _denied(request)
    writing = Writing(node.timers if context.caller.listener.is_peer else None)
    for marker in request.markers:
        for topic in marker.topics:
            for partition in topic.partition_indexes:
                writing.write(node, marker, (topic.name, partition), context.now_ms)
    return writing.answer()


def _denied(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


class Writing:
    """The markers of one request until they are committed, or until the timeout is over."""

    def __init__(self, timers: Timers | None) -> None:
        self._timers = timers
        self._results: dict[int, dict[Place, int]] = {}
        self._awaited = 0
        self._answer: Pending[WriteTxnMarkersResponse] | None = None

    def write(self, node: Node, marker: WritableTxnMarker, place: Place, now_ms: int) -> None:
        """Write one marker into one partition."""
        facts = Marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        self._awaited += 1
        try:
            written = write_marker(node, *place, facts, now_ms)
        except ApiError as error:
            self._arrived(marker.producer_id, place, error)
            return
        if self._timers is not None:
            written = within(written, self._timers, PATIENCE_MS, _late)
        written.when_done(
            lambda _: self._arrived(marker.producer_id, place, None),
            lambda error: self._arrived(marker.producer_id, place, error),
        )

    def answer(self) -> WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]:
        """Return the response; pending while a marker is."""
        if not self._awaited:
            return self._response()
        self._answer = Pending()
        return self._answer

    def _arrived(self, producer_id: int, place: Place, error: Exception | None) -> None:
        self._results.setdefault(producer_id, {})[place] = _code(error)
        self._awaited -= 1
        if not self._awaited and self._answer is not None:
            self._answer.complete_with(self._response)

    def _response(self) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(producer_id=producer_id, topics=_by_topic(results))
                for producer_id, results in self._results.items()
            ]
        )


def _late() -> None:
    raise ApiError(ErrorCode.REQUEST_TIMED_OUT)


def _code(error: Exception | None) -> int:
    if error is None:
        return 0
    code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in NOT_READY else code


def _by_topic(results: dict[Place, int]) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (topic, partition), code in results.items():
        result = WritableTxnMarkerPartitionResult(partition_index=partition, error_code=code)
        topics.setdefault(topic, []).append(result)
    return [
        WritableTxnMarkerTopicResult(name=name, partitions=partitions)
        for name, partitions in topics.items()
    ]
