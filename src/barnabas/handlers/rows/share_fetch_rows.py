"""The rows of the APIs with which members of share groups fetch and acknowledge records."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.handlers import response_errors, throttled_responses
from barnabas.handlers.context import RequestContext
from barnabas.handlers.rows.needs import READ_GROUP, READ_TOPIC
from barnabas.handlers.rows.row import Answer, Api, Row
from barnabas.handlers.shapes import CallerShapes
from barnabas.handlers.share import share_acknowledge, share_fetch
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decoder, parts_encoder
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

Handler = Callable[
    [Node, ShareFetchRequest, RequestContext], ShareFetchResponse | Pending[ShareFetchResponse]
]
Encode = Callable[[ShareFetchResponse], list[Chunk]]


@dataclass(frozen=True, slots=True)
class ShareFetchApi(Row):
    """ShareFetch, whose responses carry slices of files."""

    handle: Handler

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
        request, _ = decoder(ShareFetchRequest, version)(frame, header.body)
        encode = _encoder(node, context)
        answer = self.handle(node, request, context)
        if isinstance(answer, Pending):
            return answer.map(lambda response: [head, *encode(response)])
        return [head, *encode(answer)]


def _encoder(node: Node, context: RequestContext) -> Encode:
    """Return what encodes the response, with the pause of a quota and a note of its error."""
    parts = parts_encoder(ShareFetchResponse, context.version)
    encode: Encode = lambda response: [*parts(response)]  # noqa: E731 - it is wrapped below
    if context.quota is not None:
        encode = throttled_responses.pacing(node, context, encode)
    if node.traffic is not None:
        encode = response_errors.noting(context, encode)
    return encode


SHARE_FETCH_ROWS: tuple[Row, ...] = (
    ShareFetchApi(ApiKey.SHARE_FETCH, 1, 2, share_fetch.handle, needs=(READ_GROUP, READ_TOPIC)),
    Api(
        ApiKey.SHARE_ACKNOWLEDGE,
        1,
        2,
        ShareAcknowledgeRequest,
        ShareAcknowledgeResponse,
        share_acknowledge.handle,
        needs=(READ_GROUP, READ_TOPIC),
    ),
)
