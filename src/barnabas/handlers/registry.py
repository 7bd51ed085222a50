"""Every API that is served, by its key, and the entry point for a request.

The rows are in `rows/`: what an API needs, which versions are served, by which handler.

There are two listeners. Clients reach `SERVED`. Other brokers reach `PEER_SERVED` as well, which
holds the APIs that brokers of a cluster call among each other. Clients cannot call those.
"""

from functools import partial

from barnabas.handlers.api_versions import ApiVersionsHandler
from barnabas.handlers.cluster.envelope import EnvelopeHandler
from barnabas.handlers.context import RequestContext
from barnabas.handlers.rows.acl_rows import ACL_ROWS
from barnabas.handlers.rows.admin_rows import ADMIN_ROWS
from barnabas.handlers.rows.cluster_rows import CLUSTER_PEER_ROWS, CLUSTER_ROWS
from barnabas.handlers.rows.group_rows import GROUP_ROWS
from barnabas.handlers.rows.needs import CLUSTER_ACTION
from barnabas.handlers.rows.produce_fetch_rows import PRODUCE_FETCH_ROWS
from barnabas.handlers.rows.quota_rows import QUOTA_ROWS
from barnabas.handlers.rows.row import Answer, Api, Row
from barnabas.handlers.rows.security_rows import SECURITY_ROWS
from barnabas.handlers.rows.share_fetch_rows import SHARE_FETCH_ROWS
from barnabas.handlers.rows.share_group_rows import SHARE_GROUP_ROWS
from barnabas.handlers.rows.share_state_rows import SHARE_STATE_ROWS
from barnabas.handlers.rows.telemetry_rows import TELEMETRY_ROWS
from barnabas.handlers.rows.transaction_rows import TRANSACTION_PEER_ROWS, TRANSACTION_ROWS
from barnabas.handlers.shapes import CallerShapes
from barnabas.handlers.throttled_responses import begin
from barnabas.model.callers import ITSELF, Caller
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, KEYS
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import (
    API_VERSIONS,
    RequestHeader,
    parse_request_header,
    response_header,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

PRODUCE = int(ApiKey.PRODUCE)
"""As a plain number, since every frame is compared with it."""


def dispatch(
    node: Node,
    frame: memoryview,
    caller: Caller,
    now_ms: int,
    shapes: CallerShapes | None = None,
    *,
    was_forwarded: bool = False,
) -> tuple[Answer, RequestContext]:
    """Handle one request; raise `WireError` if the connection should be closed.

    With `shapes`, the fast path learns requests of the APIs that have one.
    """
    header = parse_request_header(frame)
    version = header.api_version
    row = SERVED.get(header.api_key)
    if row is None:
        row = _peer_row(header.api_key, caller)
    context = RequestContext(version, header.client_id, caller, now_ms, api_key=header.api_key)
    if was_forwarded:
        context.was_forwarded = True
    if node.quotas.limits and not caller.listener.is_peer:
        begin(node, context)
    if not row.low <= version <= row.high:
        context.error_code = ErrorCode.UNSUPPORTED_VERSION
        return _wrong_version(header, peer=caller.listener.is_peer), context
    return row.serve(node, frame, header, context, shapes), context


def serve_itself(node: Node) -> None:
    """Have a node answer the requests that it sends to itself."""
    node.peers.local = partial(_answer_itself, node)


def _answer_itself(node: Node, request: Message) -> Message | Pending[Message]:
    key = KEYS[type(request).__name__]
    row = SERVED.get(key) or _peer_row(key, ITSELF)
    context = RequestContext(row.high, None, ITSELF, node.timers.wall_ms)
    return row.answer_itself(node, request, context)


def _peer_row(api_key: int, caller: Caller) -> Row:
    """Return the row of an API that clients cannot call, if the caller may."""
    row = PEER_SERVED.get(api_key) if caller.listener.is_peer else None
    if row is None:
        raise WireError(f"{APIS[api_key].name} is not served")
    return row


def _wrong_version(header: RequestHeader, *, peer: bool) -> list[Chunk]:
    if header.api_key != API_VERSIONS:
        raise WireError(f"{APIS[header.api_key].name} v{header.api_version} is not served")
    head = response_header(API_VERSIONS, 0, header.correlation_id)
    return [head, encoder(ApiVersionsResponse, 0)(_api_versions.unsupported(peer=peer))]


def _is_forwarded(api_key: int) -> bool:
    return api_key in FORWARDED


_api_versions = ApiVersionsHandler()
_envelopes = EnvelopeHandler(partial(dispatch, was_forwarded=True), _is_forwarded)

SERVED: dict[int, Row] = {
    row.key: row
    for row in (
        *PRODUCE_FETCH_ROWS,
        *GROUP_ROWS,
        *SHARE_GROUP_ROWS,
        *TRANSACTION_ROWS,
        *SHARE_FETCH_ROWS,
        *ADMIN_ROWS,
        *ACL_ROWS,
        *QUOTA_ROWS,
        *CLUSTER_ROWS,
        *SECURITY_ROWS,
        *TELEMETRY_ROWS,
        *SHARE_STATE_ROWS,
        Api(
            ApiKey.API_VERSIONS,
            0,
            4,
            ApiVersionsRequest,
            ApiVersionsResponse,
            _api_versions.handle,
            needs=(),
        ),
    )
}
"""The APIs that clients and other brokers may call."""

PEER_SERVED: dict[int, Row] = {
    row.key: row
    for row in (
        *CLUSTER_PEER_ROWS,
        *TRANSACTION_PEER_ROWS,
        Api(
            ApiKey.ENVELOPE,
            0,
            0,
            EnvelopeRequest,
            EnvelopeResponse,
            _envelopes.handle,
            needs=(CLUSTER_ACTION,),
        ),
    )
}
"""The APIs that only other brokers may call."""

FORWARDED = frozenset(row.key for row in SERVED.values() if row.is_forwarded)
"""The APIs that the active controller must decide."""

# Produce is advertised from 0: see handlers/produce_fetch/produce.py.
ADVERTISED = {key: (0 if key == PRODUCE else row.low, row.high) for key, row in SERVED.items()}

_api_versions.advertise(ADVERTISED, {key: (r.low, r.high) for key, r in PEER_SERVED.items()})
