"""The rows of the APIs that read and write records; Produce and Fetch have codecs of their own."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch import (
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from barnabas.handlers.rows.needs import (
    CLUSTER_ACTION,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.handlers.rows.row import Answer, Api, Row
from barnabas.handlers.shapes import CallerShapes
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol import fetch as fetch_codec
from barnabas.protocol import produce as produce_codec
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.raft.messages import METADATA_TOPIC_ID

ProduceHandler = Callable[
    [Node, produce_codec.ProduceRequest, RequestContext], bytes | Pending[bytes] | None
]
FetchHandler = Callable[
    [Node, fetch_codec.FetchRequest, RequestContext], list[Chunk] | Pending[list[Chunk]]
]


@dataclass(frozen=True, slots=True)
class ProduceApi(Row):
    """Produce. With acks=0 there is no response."""

    handle: ProduceHandler

    @property
    def has_fast_path(self) -> bool:
        """Whether repeated requests may skip the handler."""
        return True

    def serve(
        self,
        node: Node,
        frame: memoryview,
        header: RequestHeader,
        context: RequestContext,
        shapes: CallerShapes | None,
    ) -> Answer:
        """Handle a request."""
        version = header.api_version
        request = produce_codec.parse_request(version, frame, header.body)
        answer = self.handle(node, request, context)
        if shapes is not None and not context.was_denied:
            context.prefix_bytes = shapes.learn_produce(frame, header, request)
        if answer is None:
            return None
        head = response_header(header.api_key, version, header.correlation_id)
        if isinstance(answer, Pending):
            return answer.map(lambda body: [head, body])
        return [head, answer]


@dataclass(frozen=True, slots=True)
class FetchApi(Row):
    """Fetch. Another broker also fetches the metadata log, which the quorum answers."""

    handle: FetchHandler

    @property
    def has_fast_path(self) -> bool:
        """Whether repeated requests may skip the handler."""
        return False

    def serve(
        self,
        node: Node,
        frame: memoryview,
        header: RequestHeader,
        context: RequestContext,
        shapes: CallerShapes | None,
    ) -> Answer:
        """Handle a request."""
        del shapes
        version = header.api_version
        head = response_header(header.api_key, version, header.correlation_id)
        request = fetch_codec.parse_request(version, frame, header.body)
        topics = request.topics
        if context.caller.listener.is_peer and topics and topics[0][0] == METADATA_TOPIC_ID:
            context.asked_wait_ms = request.max_wait_ms
            return _fetch_metadata(node, frame, header, head)
        answer = self.handle(node, request, context)
        if isinstance(answer, Pending):
            return answer.map(lambda body: [head, *body])
        return [head, *answer]


def _fetch_metadata(node: Node, frame: memoryview, header: RequestHeader, head: bytes) -> Answer:
    """Have the quorum answer a replica of the metadata log."""
    request, _ = decoder(FetchRequest, header.api_version)(frame, header.body)
    encode = encoder(FetchResponse, header.api_version)
    answer = node.quorum.raft.handle_fetch(request)
    if isinstance(answer, Pending):
        return answer.map(lambda response: [head, encode(response)])
    return [head, encode(answer)]


PRODUCE_FETCH_ROWS: tuple[Row, ...] = (
    ProduceApi(ApiKey.PRODUCE, 3, 13, produce.handle, needs=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID)),
    FetchApi(ApiKey.FETCH, 4, 18, fetch.handle, needs=(READ_TOPIC | CLUSTER_ACTION,)),
    Api(
        ApiKey.LIST_OFFSETS,
        1,
        11,
        ListOffsetsRequest,
        ListOffsetsResponse,
        list_offsets.handle,
        needs=(DESCRIBE_TOPIC,),
    ),
    Api(
        ApiKey.DELETE_RECORDS,
        0,
        2,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        delete_records.handle,
        needs=(DELETE_TOPIC,),
    ),
    Api(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        2,
        4,
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
        offset_for_leader_epoch.handle,
        needs=(DESCRIBE_TOPIC | CLUSTER_ACTION,),
    ),
)
