"""Every API that is served, and the way from a frame to its answer.

A row is an API: its versions, how to read the request, what to do, how to write the answer. Most
rows use the generated codecs; Produce and Fetch bring their own. A handler returns its answer or
a `Pending` one; None is no answer at all.

There are two listeners. Clients reach `SERVED`; other brokers reach `PEER_SERVED` as well, which
is how the brokers of a cluster work together. Clients cannot call those.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from barnabas.handlers import forwarding, sasl
from barnabas.handlers.admin import (
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    describe_log_dirs,
    elect_leaders,
    list_config_resources,
    list_partition_reassignments,
)
from barnabas.handlers.api_versions import ApiVersionsHandler
from barnabas.handlers.cluster import (
    alter_partition,
    broker_heartbeat,
    broker_registration,
    describe_cluster,
    describe_topic_partitions,
    metadata,
    quorum,
    unregister_broker,
    update_features,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.groups import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from barnabas.handlers.produce_fetch import (
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from barnabas.handlers.shapes import Shapes
from barnabas.handlers.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.node.peers import KEYS
from barnabas.protocol import fetch as fetch_codec
from barnabas.protocol import produce as produce_codec
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, request_class, response_class
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.headers import (
    API_VERSIONS,
    RequestHeader,
    parse_request_header,
    response_header,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.raft.messages import METADATA_TOPIC_ID

Handler = Callable[[Node, Any, RequestContext], Any]
Answer = list[Chunk] | Pending[list[Chunk]] | None
"""The chunks of a response, header included and length not; or a promise of them; or nothing."""

PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
"""As plain numbers, since every request is compared with them."""


class Api(NamedTuple):
    """One row: the versions that are served, and by what."""

    low: int
    high: int
    handle: Handler


SERVED: dict[int, Api] = {
    ApiKey.PRODUCE: Api(3, 13, produce.handle),
    ApiKey.FETCH: Api(4, 18, fetch.handle),
    ApiKey.LIST_OFFSETS: Api(1, 11, list_offsets.handle),
    ApiKey.METADATA: Api(0, 13, metadata.handle),
    ApiKey.OFFSET_COMMIT: Api(2, 10, offset_commit.handle),
    ApiKey.OFFSET_FETCH: Api(1, 10, offset_fetch.handle),
    ApiKey.FIND_COORDINATOR: Api(0, 6, find_coordinator.handle),
    ApiKey.JOIN_GROUP: Api(0, 9, join_group.handle),
    ApiKey.HEARTBEAT: Api(0, 4, heartbeat.handle),
    ApiKey.LEAVE_GROUP: Api(0, 5, leave_group.handle),
    ApiKey.SYNC_GROUP: Api(0, 5, sync_group.handle),
    ApiKey.DESCRIBE_GROUPS: Api(0, 6, describe_groups.handle),
    ApiKey.LIST_GROUPS: Api(0, 5, list_groups.handle),
    ApiKey.SASL_HANDSHAKE: Api(0, 1, sasl.handle_handshake),
    ApiKey.API_VERSIONS: Api(0, 4, lambda *_: None),
    ApiKey.CREATE_TOPICS: Api(2, 7, create_topics.handle),
    ApiKey.DELETE_TOPICS: Api(1, 6, delete_topics.handle),
    ApiKey.DELETE_RECORDS: Api(0, 2, delete_records.handle),
    ApiKey.INIT_PRODUCER_ID: Api(0, 5, init_producer_id.handle),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(2, 4, offset_for_leader_epoch.handle),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(0, 5, add_partitions_to_txn.handle),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(0, 4, add_offsets_to_txn.handle),
    ApiKey.END_TXN: Api(0, 5, end_txn.handle),
    ApiKey.WRITE_TXN_MARKERS: Api(1, 2, write_txn_markers.handle),
    ApiKey.TXN_OFFSET_COMMIT: Api(0, 5, txn_offset_commit.handle),
    ApiKey.DESCRIBE_CONFIGS: Api(1, 4, describe_configs.handle),
    ApiKey.ALTER_CONFIGS: Api(0, 2, alter_configs.handle),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Api(1, 2, alter_replica_log_dirs.handle),
    ApiKey.DESCRIBE_LOG_DIRS: Api(1, 5, describe_log_dirs.handle),
    ApiKey.SASL_AUTHENTICATE: Api(0, 2, sasl.handle_authenticate),
    ApiKey.CREATE_PARTITIONS: Api(0, 3, create_partitions.handle),
    ApiKey.DELETE_GROUPS: Api(0, 2, delete_groups.handle),
    ApiKey.ELECT_LEADERS: Api(0, 2, elect_leaders.handle),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(0, 1, alter_configs.handle_incremental),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(0, 1, alter_partition_reassignments.handle),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(0, 0, list_partition_reassignments.handle),
    ApiKey.OFFSET_DELETE: Api(0, 0, offset_delete.handle),
    ApiKey.DESCRIBE_QUORUM: Api(0, 2, quorum.handle_describe_quorum),
    ApiKey.UPDATE_FEATURES: Api(0, 2, update_features.handle),
    ApiKey.DESCRIBE_CLUSTER: Api(0, 2, describe_cluster.handle),
    ApiKey.DESCRIBE_PRODUCERS: Api(0, 0, describe_producers.handle),
    ApiKey.UNREGISTER_BROKER: Api(0, 0, unregister_broker.handle),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(0, 0, describe_transactions.handle),
    ApiKey.LIST_TRANSACTIONS: Api(0, 2, list_transactions.handle),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(0, 1, consumer_group_heartbeat.handle),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Api(0, 1, consumer_group_describe.handle),
    ApiKey.LIST_CONFIG_RESOURCES: Api(0, 1, list_config_resources.handle),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(0, 0, describe_topic_partitions.handle),
    ApiKey.ADD_RAFT_VOTER: Api(0, 1, quorum.handle_add_voter),
    ApiKey.REMOVE_RAFT_VOTER: Api(0, 0, quorum.handle_remove_voter),
}

PEER_SERVED: dict[int, Api] = {
    ApiKey.VOTE: Api(0, 2, quorum.handle_vote),
    ApiKey.BEGIN_QUORUM_EPOCH: Api(0, 1, quorum.handle_begin_quorum_epoch),
    ApiKey.END_QUORUM_EPOCH: Api(0, 1, quorum.handle_end_quorum_epoch),
    ApiKey.ALTER_PARTITION: Api(2, 3, alter_partition.handle),
    ApiKey.FETCH_SNAPSHOT: Api(0, 1, quorum.handle_fetch_snapshot),
    ApiKey.BROKER_REGISTRATION: Api(0, 4, broker_registration.handle),
    ApiKey.BROKER_HEARTBEAT: Api(0, 2, broker_heartbeat.handle),
    ApiKey.ALLOCATE_PRODUCER_IDS: Api(0, 0, allocate_producer_ids.handle),
    ApiKey.UPDATE_RAFT_VOTER: Api(0, 0, quorum.handle_update_voter),
}
"""What brokers alone ask of each other; a client that asks finds nobody."""

# Produce is advertised from 0: see handlers/produce_fetch/produce.py.
ADVERTISED = {key: (0 if key == PRODUCE else api.low, api.high) for key, api in SERVED.items()}

_api_versions = ApiVersionsHandler(
    ADVERTISED, {key: (api.low, api.high) for key, api in PEER_SERVED.items()}
)
SERVED[API_VERSIONS] = Api(0, 4, _api_versions.handle)


def serve_itself(node: Node) -> None:
    """Have a node answer what it asks of itself."""
    node.peers.local = partial(_answer_itself, node)


def _answer_itself(node: Node, request: Message) -> Any:  # noqa: ANN401 - as in the rows
    key = KEYS[type(request).__name__]
    api = _row(key, peer=True)
    context = RequestContext(api.high, None, "", node.timers.wall_ms, peer=True)
    return api.handle(node, request, context)


def dispatch(
    node: Node,
    frame: memoryview,
    client_host: str,
    now_ms: int,
    shapes: Shapes | None = None,
    *,
    peer: bool = False,
) -> tuple[Answer, RequestContext]:
    """Handle one request; raise `WireError` where the connection should be closed.

    With `shapes`, a Produce or OffsetCommit request teaches the short way for the next one like it.
    """
    header = parse_request_header(frame)
    api = _row(header.api_key, peer=peer)
    context = RequestContext(header.api_version, header.client_id, client_host, now_ms, peer)
    if not api.low <= header.api_version <= api.high:
        return _wrong_version(header, peer=peer), context
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    if header.api_key == PRODUCE:
        return _produce(node, frame, header, head, context, shapes), context
    if header.api_key == FETCH:
        return _fetch(node, frame, header, head, context), context
    request, _ = decoder(request_class(header.api_key), header.api_version)(frame, header.body)
    if forwarding.belongs_elsewhere(node, header.api_key):
        return _elsewhere(node, frame, header, head, context, request), context
    encode = encoder(response_class(header.api_key), header.api_version)
    answer = api.handle(node, request, context)
    if shapes is not None and isinstance(request, OffsetCommitRequest):
        context.prefix_bytes = shapes.learn_commit(frame, header, request, now_ms)
    decides = header.api_key in forwarding.FORWARDED
    if decides and not isinstance(answer, Pending):
        # It may rest on what is proposed only: a topic that is there already, say.
        answer = node.commit((), now_ms).map(partial(_once_known, answer))
    if isinstance(answer, Pending):
        encoded: Pending[list[Chunk]] = answer.map(lambda response: [head, encode(response)])
        if decides:
            encoded.or_refused(lambda _: [head, forwarding.refuse(header, request)])
        return encoded, context
    return [head, encode(answer)], context


def _once_known(answer: Message, _: None) -> Message:
    return answer


def _row(api_key: int, *, peer: bool) -> Api:
    api = SERVED.get(api_key)
    if api is None and peer:
        api = PEER_SERVED.get(api_key)
    if api is None:
        raise WireError(f"{APIS[api_key].name} is not served")
    return api


def _elsewhere(
    node: Node,
    frame: memoryview,
    header: RequestHeader,
    head: bytes,
    context: RequestContext,
    request: Message,
) -> Answer:
    if context.peer:
        return [head, forwarding.refuse(header, request)]
    body = bytes(frame[header.body :])
    return forwarding.pass_on(node, header, request, body).map(lambda answer: [head, answer])


def _produce(
    node: Node,
    frame: memoryview,
    header: RequestHeader,
    head: bytes,
    context: RequestContext,
    shapes: Shapes | None,
) -> Answer:
    request = produce_codec.parse_request(header.api_version, frame, header.body)
    answer = produce.handle(node, request, context)
    if shapes is not None:
        context.prefix_bytes = shapes.learn_produce(frame, header, request)
    if answer is None:
        return None
    if isinstance(answer, Pending):
        return answer.map(lambda body: [head, body])
    return [head, answer]


def _fetch(
    node: Node, frame: memoryview, header: RequestHeader, head: bytes, context: RequestContext
) -> Answer:
    request = fetch_codec.parse_request(header.api_version, frame, header.body)
    if context.peer and request.topics and request.topics[0][0] == METADATA_TOPIC_ID:
        return _fetch_metadata(node, frame, header, head)
    answer = fetch.handle(node, request, context)
    if isinstance(answer, Pending):
        return answer.map(lambda body: [head, *body])
    return [head, *answer]


def _fetch_metadata(node: Node, frame: memoryview, header: RequestHeader, head: bytes) -> Answer:
    """Have the quorum answer a copy of its log."""
    request, _ = decoder(FetchRequest, header.api_version)(frame, header.body)
    encode = encoder(FetchResponse, header.api_version)
    answer = node.quorum.raft.handle_fetch(request)
    if isinstance(answer, Pending):
        return answer.map(lambda response: [head, encode(response)])
    return [head, encode(answer)]


def _wrong_version(header: RequestHeader, *, peer: bool) -> list[Chunk]:
    if header.api_key != API_VERSIONS:
        raise WireError(f"{APIS[header.api_key].name} v{header.api_version} is not served")
    encode = encoder(response_class(API_VERSIONS), 0)
    head = response_header(API_VERSIONS, 0, header.correlation_id)
    return [head, encode(_api_versions.unsupported(peer=peer))]
