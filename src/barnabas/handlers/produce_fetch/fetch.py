"""Fetch (key 1), versions 4 to 18: sessions from 7 (KIP-227), topic ids from 13 (KIP-516).

Fetch returns whole batches, from the one that contains the offset on, and at least one even over
the limits. The response waits until `min_bytes` are available, a partition has an error, or
`max_wait` is over. Data that was stored before this process started is verified first. Each attempt
to read verifies only a little, and returns no more than was verified
(`node/partitions/log_reading.py`). If that is nothing, the response waits for the verification,
even after `max_wait`: some clients take an empty response for the end of the log.

A read_committed consumer reads up to the last stable offset. The response lists the aborted
transactions, and the client skips their records. A consumer that names its rack is sent to an
in-sync replica nearby (KIP-392), and every replica serves consumers up to the high watermark that
it knows. A consumer whose last batch is not in the log receives the point where the two diverge
(KIP-595).

A consumer quota limits one response to what is left of ten seconds' worth, and to one second's
worth if less is left, but at least one batch is returned. A client that is over its quota receives
an empty response with the time to pause, on any of its connections (KIP-219). In Kafka the response
that exceeds the quota is already empty, and a batch larger than ten seconds' worth is never
returned.

Followers fetch like consumers, over the listener for brokers; `replica_fetch.py` has the
differences. With an authorizer a fetch checks each time that it reads which topics its consumer may
read, those of its session included. A waiting fetch checks again when ACLs or roles change.

Deviations: a follower's pending request is answered at once when its next one arrives, and each
partition that it names is answered with records at most once. A follower learns a new high
watermark after a short delay: under load it is then in a response with records, and needs no extra
response. A follower answers NOT_LEADER_OR_FOLLOWER, not OFFSET_OUT_OF_RANGE, for an offset that it
does not have yet.
"""

from collections.abc import Iterable
from functools import partial

from barnabas.handlers.authorization import READ_TOPIC, require, topic_name
from barnabas.handlers.context import RequestContext
from barnabas.handlers.leadership import endpoints_of, leader_instead
from barnabas.handlers.produce_fetch.counting import count_fetched
from barnabas.handlers.produce_fetch.replica_fetch import note_progress, read_for_replica
from barnabas.handlers.throttled_responses import debt_now_ms
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NEWS_WAIT_MS,
    FetchSession,
    Followed,
    Follower,
)
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.node.record_waiting import RecordWait
from barnabas.protocol.fetch import (
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResult,
    TopicKey,
    encode_response,
)
from barnabas.security.client_quotas import QuotaKind
from barnabas.storage.trust import Allowance

READ_COMMITTED = 1
FROM_FOLLOWERS_FROM = 11
"""Consumers of earlier versions fetch from the leader only."""

CHECK_WAIT_MS = 5_000
"""How long a fetch waits at least for the verification of stored records."""

Found = list[tuple[Followed, FetchResult]]


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> list[Chunk] | Pending[list[Chunk]]:
    """Answer at once if there is enough data; otherwise wait."""
    if request.replica_id >= 0 and not context.caller.listener.is_peer:
        raise WireError("brokers fetch over the listener for brokers")
    try:
        if context.quota is not None:
            debt_ms = debt_now_ms(node, context, QuotaKind.FETCH)
            if debt_ms:
                return _throttled(node, request, context, debt_ms)
        follower, everything = _follower(node, request, context)
    except ApiError as error:
        context.error_code = error.code
        return encode_response(context.version, [], error_code=error.code)
    if request.replica_id >= 0:
        note_progress(node, request)
    kind = Fetch if node.authorizer is None else GuardedFetch
    fetch = kind(node, request, context, follower, everything=everything)
    found, size, failed = fetch.look()
    if fetch.is_over(size, failed=failed) or not follower.followed:
        return fetch.answer(found, size)
    return fetch.wait(found)


def _throttled(
    node: Node, request: FetchRequest, context: RequestContext, debt_ms: int
) -> list[Chunk]:
    """Answer without records, as Kafka does: start no session, and keep an existing one."""
    session_id = 0
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.sessions.close(request.session_id)
    else:
        _follower(node, request, context)
        session_id = request.session_id
    context.throttle_ms = debt_ms
    return encode_response(context.version, [], throttle_ms=debt_ms, session_id=session_id)


def _follower(node: Node, request: FetchRequest, context: RequestContext) -> tuple[Follower, bool]:
    """Return the fetcher with its partitions, and whether the response contains all of them."""
    by_id = context.version >= TOPIC_IDS_FROM
    replica_id = request.replica_id
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH and request.topics:
            if replica_id >= 0:
                session = node.sessions.open_for_replica(replica_id, request.replica_epoch)
            else:
                session = node.sessions.open(by_id=by_id)
        follower = session or Follower(replica_id)
        follower.follow(request.topics)
        return follower, True
    session = node.sessions.resume(
        request.session_id, request.session_epoch, by_id=by_id, replica_id=replica_id
    )
    if replica_id >= 0 and session.wait is not None:
        session.wait.expire()
    session.follow(request.topics)
    session.forget(request.forgotten)
    return session, False


class Fetch:
    """One request, until it is answered."""

    __slots__ = (
        "allowance",
        "committed_only",
        "context",
        "everything",
        "follower",
        "in_session",
        "max_bytes",
        "min_bytes",
        "node",
        "pending",
        "request",
        "waiting",
    )

    def __init__(
        self,
        node: Node,
        request: FetchRequest,
        context: RequestContext,
        follower: Follower,
        *,
        everything: bool,
    ) -> None:
        self.node = node
        self.request = request
        self.committed_only = request.isolation_level == READ_COMMITTED
        self.context = context
        self.follower = follower
        self.everything = everything
        self.in_session = isinstance(follower, FetchSession)
        self.max_bytes = min(request.max_bytes, node.settings.performance.max_fetch_bytes)
        self.min_bytes = request.min_bytes
        if context.quota is not None:
            limit_bytes = context.quota.fetch_bytes_max(node.timers.now_ms)
            self.max_bytes = min(self.max_bytes, limit_bytes or self.max_bytes)
            # Half of it can be reached with whole batches, whatever their size.
            self.min_bytes = min(self.min_bytes, self.max_bytes // 2)
        self.pending: Pending[list[Chunk]] = Pending()

    def look(self) -> tuple[Found, int, bool]:
        """Read partitions that may have data; return it, its size, and whether there are errors."""
        follower, budget = self.follower, self.max_bytes
        self.allowance = Allowance()
        found: Found = []
        size, failed = 0, False
        candidates: Iterable[Followed] = (
            follower.followed.values() if self.everything else list(follower.suspects)
        )
        for followed in candidates:
            result = self._read(followed, budget - size, first=size == 0)
            if result.records is not None:
                size += result.records.length
            elif result.error_code or result.diverging or result.preferred_replica >= 0:
                failed = True
            elif self._is_drained(followed, result):
                follower.suspects.pop(followed, None)
            if self.everything or followed.has_news(result):
                found.append((followed, result))
        return found, size, failed

    def is_over(self, size: int, *, failed: bool) -> bool:
        """Tell whether the response is complete, or does not wait."""
        if size >= self.min_bytes or failed:
            return True
        checks = self.allowance.is_spent and not size
        return self.request.max_wait_ms <= 0 and not checks

    def _is_drained(self, followed: Followed, result: FetchResult) -> bool:
        """Tell whether the partition has no more data at present."""
        offset = followed.wanted.fetch_offset
        if self.in_session and followed.has_news(result):
            return False  # a later response must still send the high watermark
        if self.request.replica_id >= 0:
            return followed.partition is None or followed.partition.log.end_offset <= offset
        return result.high_watermark <= offset

    def wait(self, found: Found) -> Pending[list[Chunk]]:
        """Read again whenever a partition advances, until `max_wait` is over."""
        if not self.in_session:
            for followed in self.follower.followed.values():
                followed.attach(self.node.replica(followed.key, followed.wanted.partition))
        patience_ms = self.request.max_wait_ms
        if self.allowance.is_spent:
            patience_ms = max(patience_ms, CHECK_WAIT_MS)
        timers = self.node.timers
        self.context.asked_wait_ms = patience_ms
        self.waiting = RecordWait(timers, patience_ms, self._look_again, self.follower)
        if found and self.request.replica_id >= 0:
            self.waiting.shorten(NEWS_WAIT_MS)
        self.pending.on_abandoned = self._abandon
        return self.pending

    def answer(self, found: Found, size: int, *, has_waited: bool = False) -> list[Chunk]:
        """Encode the response, and record in the session what it contains."""
        context = self.context
        if context.quota is not None:
            if size and has_waited:
                debt_ms = debt_now_ms(self.node, context, QuotaKind.FETCH)
                if debt_ms:
                    return self._answer_empty(debt_ms)
            now_ms = self.node.timers.now_ms
            context.throttle_ms = context.quota.use(QuotaKind.FETCH, size, now_ms)
        session = self.follower if isinstance(self.follower, FetchSession) else None
        topics: dict[TopicKey, list[FetchResult]] = {}
        for followed, result in found:
            topics.setdefault(followed.key, []).append(result)
            if session is not None:
                followed.sent(result)
                if session.replica_id >= 0:
                    _leave_alone(session, followed, result)
                elif result.records is not None and not self.everything:
                    # Served last next time, so that a busy partition does not starve the others.
                    session.suspects.pop(followed, None)
                    session.suspects[followed] = None
        if self.node.traffic is not None:
            count_fetched(self.node, self.node.traffic, topics, context)
        if session is None or session.closed:
            self.follower.close()  # again, for a session that was closed while it waited
        moved = [result.leader for _, result in found if result.leader is not None]
        return encode_response(
            context.version,
            list(topics.items()),
            throttle_ms=context.throttle_ms,
            session_id=0 if session is None else session.session_id,
            endpoints=endpoints_of(self.node, moved, context.caller.listener) if moved else (),
        )

    def _answer_empty(self, debt_ms: int) -> list[Chunk]:
        """Answer without records: another fetch used up the quota while this one waited."""
        session_id = 0
        if not isinstance(self.follower, FetchSession):
            self.follower.close()
        elif self.everything or self.follower.closed:
            self.node.sessions.close(self.follower.session_id)
        else:
            session_id = self.follower.session_id
        context = self.context
        context.throttle_ms = debt_ms
        return encode_response(context.version, [], throttle_ms=debt_ms, session_id=session_id)

    def _look_again(self, *, at_last: bool = False) -> None:
        try:
            found, size, failed = self.look()
        except Exception as error:  # noqa: BLE001 - the append that advanced the partition must not fail
            self.waiting.stop()
            self.pending.fail(error)
            return
        if at_last or self.is_over(size, failed=failed):
            self.waiting.stop()
            self.pending.complete_with(partial(self.answer, found, size, has_waited=True))

    def _abandon(self) -> None:
        """Stop waiting: the client closed the connection."""
        self.waiting.stop()
        if not self.in_session:
            self.follower.close()

    def _read(self, followed: Followed, budget: int, *, first: bool) -> FetchResult:
        wanted = followed.wanted
        try:
            partition = self._find(followed)
        except ApiError as error:
            followed.detach()
            return self._refused(followed, error.code)._replace(aborted=())  # as in Kafka
        if self.in_session:
            followed.attach(partition)
        limit_bytes = min(wanted.max_bytes, budget)
        try:
            if self.request.replica_id >= 0:
                asking = self.request.replica_id
                return read_for_replica(
                    partition, asking, wanted, limit_bytes, self.allowance, at_least_one=first
                )
            return self._read_committed(partition, followed, limit_bytes, first=first)
        except ApiError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                return self._out_of_range(partition, followed)
            return self._refused(followed, error.code)

    def _find(self, followed: Followed) -> Partition:
        """Return the partition; consumers that know followers may read from one."""
        number = followed.wanted.partition
        if self.request.replica_id >= 0 or self.context.version < FROM_FOLLOWERS_FROM:
            return self.node.find(followed.key, number)
        return self.node.replica(followed.key, number)

    def _read_committed(
        self, partition: Partition, followed: Followed, limit_bytes: int, *, first: bool
    ) -> FetchResult:
        wanted = followed.wanted
        if wanted.leader_epoch != partition.leader_epoch:
            partition.check_leader_epoch(wanted.leader_epoch)
        records, aborted, diverging, nearer = None, None, None, -1
        if (
            wanted.last_fetched_epoch >= 0 and partition.leads
        ):  # followers may not know all epochs yet
            diverging = partition.diverges(wanted.last_fetched_epoch, wanted.fetch_offset)
        if self.request.rack_id and partition.in_sync is not None:
            rack_id = self.request.rack_id
            nearer = self.node.replicas.nearest(partition, rack_id, wanted.fetch_offset)
        if diverging is None and nearer < 0:
            records = partition.read(
                wanted.fetch_offset,
                limit_bytes,
                self.allowance,
                committed_only=self.committed_only,
                at_least_one=first,
            )
            if self.committed_only:
                aborted = partition.aborted(wanted.fetch_offset, records)
        return FetchResult(
            wanted.partition,
            0,
            partition.watermark.high,
            partition.watermark.last_stable,
            partition.log.start_offset,
            records,
            aborted,
            diverging,
            None,
            nearer,
        )

    def _out_of_range(self, partition: Partition, followed: Followed) -> FetchResult:
        wanted = followed.wanted
        if not partition.leads and wanted.fetch_offset > partition.log.end_offset:
            return self._refused(followed, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.request.replica_id < 0:
            return self._refused(followed, ErrorCode.OFFSET_OUT_OF_RANGE)
        high, start = partition.high_watermark, partition.log.start_offset
        return FetchResult(wanted.partition, ErrorCode.OFFSET_OUT_OF_RANGE, high, -1, start)

    def _refused(self, followed: Followed, code: ErrorCode) -> FetchResult:
        number = followed.wanted.partition
        leader = leader_instead(self.node, followed.key, number, code)
        return FetchResult(number, code, leader=leader)


class GuardedFetch(Fetch):
    """A fetch of a consumer that may read only some topics."""

    __slots__ = ()

    def look(self) -> tuple[Found, int, bool]:
        """Look at all partitions if rights have changed, since some may not have moved."""
        authorizer, follower = self.node.authorizer, self.follower
        if (
            authorizer is not None
            and follower.replica_id < 0
            and follower.rights_version != authorizer.version
        ):
            follower.rights_version = authorizer.version
            follower.suspects.update(dict.fromkeys(follower.followed.values()))
        return super().look()

    def wait(self, found: Found) -> Pending[list[Chunk]]:
        """Look again when rights change, too."""
        pending = super().wait(found)
        self.node.sessions.guarded.add(self.waiting)
        return pending

    def _find(self, followed: Followed) -> Partition:
        name = topic_name(self.node, followed.key)
        if name is not None:
            require(self.node, self.context, READ_TOPIC, name)
        return super()._find(followed)


def _leave_alone(session: FetchSession, followed: Followed, result: FetchResult) -> None:
    """Skip a partition until the follower has processed the last response for it."""
    if result.records is not None or result.error_code or result.diverging:
        followed.is_busy = True
        session.suspects.pop(followed, None)
