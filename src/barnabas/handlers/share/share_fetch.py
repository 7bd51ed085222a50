"""ShareFetch (key 78), versions 1 and 2: exact numbers of records and renewals from version 2 on.

A member of a share group gets whole batches, and a list of the offsets in them that it has
acquired. The response waits until a partition of the session has something, `max_wait` is over, or
acknowledgements in the request are stored. So `min_bytes` above 1 is taken for 1.

The first request of a session may carry no acknowledgements. With the final epoch, or when the
connection closes, the session ends: the member gives back what it still holds.

Deviations: acknowledgements are answered as soon as they are stored, when there is nothing to
fetch; Kafka waits for records, up to `max_wait`.
"""

from collections import defaultdict
from typing import cast

from barnabas.handlers.authorization import READ_TOPIC, require, topic_name
from barnabas.handlers.context import RequestContext
from barnabas.handlers.leadership import endpoints_of, leader_instead
from barnabas.handlers.share.acknowledging import Results, acknowledge, batches_by_place
from barnabas.handlers.share.share_owner import close_with_connection, owner_of, sharing_of
from barnabas.handlers.throttled_responses import debt_now_ms, pause_at_least
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.node.record_waiting import RecordWait
from barnabas.node.share.share_partition import FetchLimits, Piece, SharePartition
from barnabas.node.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession
from barnabas.protocol.current_leader import Leader
from barnabas.protocol.message import Records
from barnabas.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from barnabas.security.client_quotas import QuotaKind
from barnabas.storage.trust import Allowance

EXACT = 1
"""The acquire mode in which a member gets no more records than it asks for."""
NO_RECORDS = b""


def handle(
    node: Node, request: ShareFetchRequest, context: RequestContext
) -> ShareFetchResponse | Pending[ShareFetchResponse]:
    """Store acknowledgements, and answer with records as soon as there are some."""
    try:
        _check(request)
        session = _session(node, request, context)
    except ApiError as error:
        return ShareFetchResponse(error_code=error.code, error_message=error.message or None)
    return ShareFetch(node, request, context, session).begin()


def _check(request: ShareFetchRequest) -> None:
    limits = request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records
    if request.is_renew_ack and any(limits):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a request that renews fetches nothing")
    if request.share_session_epoch == INITIAL_EPOCH and any(
        batches for _, batches in batches_by_place(request.topics)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a new session has nothing to acknowledge")


def _session(node: Node, request: ShareFetchRequest, context: RequestContext) -> ShareSession:
    sessions = sharing_of(node).sessions
    owner = owner_of(node, context, request.group_id, request.member_id)
    if request.share_session_epoch == FINAL_EPOCH:
        return sessions.find(owner)
    if request.share_session_epoch == INITIAL_EPOCH:
        session = sessions.open(owner)
        close_with_connection(node, context, session)
    else:
        session = sessions.resume(owner, request.share_session_epoch)
    forgotten = [
        Place(TopicId(topic.topic_id), number)
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    ]
    session.change((place for place, _ in batches_by_place(request.topics)), forgotten)
    return session


class ShareFetch:
    """One request, until it is answered."""

    def __init__(
        self,
        node: Node,
        request: ShareFetchRequest,
        context: RequestContext,
        session: ShareSession,
    ) -> None:
        self._node = node
        self._sharing = sharing_of(node)
        self._request = request
        self._context = context
        self._session = session
        self._is_final = request.share_session_epoch == FINAL_EPOCH
        self._pieces: dict[Place, Piece] = {}
        self._sources: dict[Place, SharePartition] = {}
        """Where the pieces come from."""
        self._errors: dict[Place, ErrorCode] = {}
        self._acks: Results | None = None
        self._watched: list[SharePartition] = []
        self._wait: RecordWait | None = None
        self._pending: Pending[ShareFetchResponse] = Pending()

    def begin(self) -> Pending[ShareFetchResponse]:
        """Begin to store acknowledgements, and look for records."""
        request = self._request
        self._pending.on_abandoned = self._stop
        acks = acknowledge(self._node, self._context, self._session.owner, request.topics)
        if not (self._is_final or request.is_renew_ack):
            self._look()
        acks.when_done(self._acknowledged, self._pending.fail)
        if not self._pending.done:
            self._watch()
        return self._pending

    def _acknowledged(self, results: Results) -> None:
        self._acks = results
        has_something = bool(self._pieces or self._errors or results)
        if has_something or self._is_final or self._request.max_wait_ms <= 0:
            self._answer()

    def _watch(self) -> None:
        """Look again when a partition of the session has something, until `max_wait` is over."""
        if self._pieces or self._errors:
            return  # only the acknowledgements are missing
        timeout_ms = self._request.max_wait_ms
        self._context.asked_wait_ms = timeout_ms
        self._wait = RecordWait(self._node.timers, max(1, timeout_ms), self._look_again)
        for place in self._session.places:
            try:
                partition = self._sharing.partitions.find(self._session.owner.group_id, place)
            except ApiError:
                continue  # the look has found the error already
            self._watch_one(partition)

    def _watch_one(self, partition: SharePartition) -> None:
        if self._woken not in partition.waiting:
            partition.waiting[self._woken] = None
            self._watched.append(partition)

    def _woken(self) -> None:
        if self._wait is not None:
            self._wait.wake()

    def _look_again(self, *, at_last: bool = False) -> None:
        if self._acks is None:
            return  # they are answered together
        try:
            self._look()
        except Exception as error:  # noqa: BLE001 - the append that woke this must not fail
            self._stop()
            self._pending.fail(error)
            return
        if at_last or self._pieces or self._errors:
            self._answer()

    def _look(self) -> None:
        """Acquire what there is, up to the limits of the request."""
        request, allowance = self._request, Allowance()
        size_left, records_left = self._bytes_max(), request.max_records
        for place in list(self._session.places):
            if records_left <= 0 or size_left <= 0:
                return
            limits = FetchLimits(size_left, records_left, request.share_acquire_mode == EXACT)
            piece = self._look_at(place, limits, allowance)
            if piece is None:
                continue
            self._pieces[place] = piece
            self._session.served(place)
            size_left -= piece.records.length
            records_left -= sum(run.last - run.first + 1 for run in piece.runs)

    def _bytes_max(self) -> int:
        """Return how many bytes a response may have; none for a client that must pause."""
        quota = self._context.quota
        size = min(self._request.max_bytes, self._node.settings.performance.max_fetch_bytes)
        if quota is None:
            return size
        if debt_now_ms(self._node, self._context, QuotaKind.FETCH):
            return 0
        return min(size, quota.fetch_bytes_max(self._node.timers.now_ms) or size)

    def _look_at(self, place: Place, limits: FetchLimits, allowance: Allowance) -> Piece | None:
        owner = self._session.owner
        try:
            name = topic_name(self._node, place.topic_id)
            if name is not None:
                require(self._node, self._context, READ_TOPIC, name)
            partition = self._sharing.partitions.find(owner.group_id, place)
            if self._wait is not None:
                self._watch_one(partition)  # another one than before, after an error
            is_first = not self._pieces
            self._sources[place] = partition
            return partition.acquire(owner.member_id, limits, allowance, at_least_one=is_first)
        except ApiError as error:
            self._errors[place] = error.code
            return None

    def _answer(self) -> None:
        self._stop()
        if self._is_final:
            self._sharing.sessions.close(self._session)
        self._pending.complete(self._response())

    def _stop(self) -> None:
        """Stop waiting."""
        if self._wait is not None:
            self._wait.stop()
            self._wait = None
        for partition in self._watched:
            partition.waiting.pop(self._woken, None)
        self._watched.clear()

    def _count(self) -> None:
        """Charge the client's quota, and count the bytes of each topic."""
        node, context = self._node, self._context
        sizes = {place: piece.records.length for place, piece in self._pieces.items()}
        if context.quota is not None:
            debt_ms = debt_now_ms(node, context, QuotaKind.FETCH)
            pause_ms = context.quota.use(QuotaKind.FETCH, sum(sizes.values()), node.timers.now_ms)
            pause_at_least(context, max(debt_ms, pause_ms))
        if node.traffic is not None:
            for place, size in sizes.items():
                numbers = node.traffic.named(place.topic_id, node.image)
                numbers.bytes_out += size
                numbers.fetches += 1
            context.partition_count = len(sizes)

    def _drop_lost(self) -> None:
        """Drop records of partitions that were lost since: the member does not hold them any more.

        They were acquired before the acknowledgements of the same request were stored.
        """
        for place in list(self._pieces):
            if not self._sources[place].is_current:
                del self._pieces[place]
                self._errors[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _response(self) -> ShareFetchResponse:
        self._drop_lost()
        self._count()
        acks = self._acks or {}
        shown = dict.fromkeys([*self._pieces, *self._errors, *acks])
        if self._request.share_session_epoch == INITIAL_EPOCH:
            shown.update(dict.fromkeys(self._session.places))
        topics: dict[bytes, list[PartitionData]] = defaultdict(list)
        leaders: list[Leader] = []
        for place in shown:
            data = self._data(place, acks.get(place, ErrorCode.NONE))
            code = ErrorCode(data.error_code or data.acknowledge_error_code)
            leader = leader_instead(self._node, place.topic_id, place.partition, code)
            if leader is not None:
                leaders.append(leader)
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=leader.node_id, leader_epoch=leader.epoch
                )
            topics[place.topic_id].append(data)
        rules = self._sharing.rules(self._session.owner.group_id)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=rules.lock_duration_ms,
            responses=[
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
            node_endpoints=[
                NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
                for each in endpoints_of(self._node, leaders, self._context.caller.listener)
            ],
        )

    def _data(self, place: Place, ack_code: ErrorCode) -> PartitionData:
        piece = self._pieces.get(place)
        return PartitionData(
            partition_index=place.partition,
            error_code=self._errors.get(place, ErrorCode.NONE),
            acknowledge_error_code=ack_code,
            # The row sends slices of files without copying them.
            records=NO_RECORDS if piece is None else cast("Records", piece.records),
            acquired_records=[]
            if piece is None
            else [
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
                for first, last, deliveries in piece.runs
            ],
        )
