"""Fetch (key 1), versions 4 to 18: sessions from 7 (KIP-227), topic ids from 13 (KIP-516).

Whole batches are returned, from the one that holds the offset on, and at least one even over the
limits. The answer waits until `min_bytes` are there, something went wrong, or `max_wait` is over.
What was stored before this process started is checked first; one look of a fetch does only a little
of that, and is served no more than was checked (`node/reading.py`). Where that is nothing, the
answer waits for the check, whatever `max_wait` is: some clients take an empty answer for the end of
the log.
With read_committed nothing is returned from the last stable offset on, and the transactions that
were aborted are listed: the client leaves out their records. Consumers that say where they stand
are sent to a copy nearby that is in sync (KIP-392), and every copy serves consumers up to the high
watermark it knows. Whoever asks for what follows a batch that the log does not hold is told
where the two part (KIP-595).

A consumer quota caps one answer at a second's worth, but at least one batch is returned. A client
that still has to pause for what it fetched before gets an empty answer that says for how long,
whichever connection it asks on (KIP-219).

Followers ask as consumers do, over the listener for brokers; what is theirs alone is in
`replica_fetch.py`.
Deviations: a follower's request is answered at once when its next one comes, and each partition
it names is answered with records at most once. It hears of a high watermark after a moment, not at
once: where records keep coming that goes with them, and costs no answer of its own. A copy that
follows answers NOT_LEADER_OR_FOLLOWER, not OFFSET_OUT_OF_RANGE, for an offset that it does not
have yet.
"""

from collections.abc import Iterable

from barnabas.handlers.context import RequestContext
from barnabas.handlers.leadership import endpoints_of, leader_instead
from barnabas.handlers.produce_fetch.replica_fetch import note_progress, read_for_replica
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    Followed,
    Follower,
)
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.fetch import (
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResult,
    TopicKey,
    encode_response,
)
from barnabas.storage.trust import Allowance

READ_COMMITTED = 1
FROM_FOLLOWERS_FROM = 11
"""Consumers of earlier versions know only the leader."""

NEWS_WAIT_MS = 10
"""How long a follower's fetch waits for records that its leader's progress can be told with: a
fetch waits its time only while the follower knows the high watermark (KIP-1166)."""

CHECK_WAIT_MS = 5_000
"""How long a fetch waits for stored records to be checked, at least."""

Found = list[tuple[Followed, FetchResult]]


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> list[Chunk] | Pending[list[Chunk]]:
    """Answer at once where there is enough, else wait."""
    if request.replica_id >= 0 and not context.peer:
        raise WireError("brokers fetch over the listener for brokers")
    try:
        if node.fetch_quota.limits and not context.peer:
            debt_ms = node.fetch_quota.debt_ms(context.client_id, node.timers.now_ms)
            if debt_ms:
                return _throttled(node, request, context, debt_ms)
        follower, everything = _follower(node, request, context)
    except ApiError as error:
        return encode_response(context.version, [], error_code=error.code)
    if request.replica_id >= 0:
        note_progress(node, request)
    fetch = Fetch(node, request, context, follower, everything=everything)
    found, size, failed = fetch.look()
    if fetch.is_over(size, failed=failed) or not follower.followed:
        return fetch.answer(found, size)
    return fetch.wait(found)


def _throttled(
    node: Node, request: FetchRequest, context: RequestContext, debt_ms: int
) -> list[Chunk]:
    """Answer without records, as Kafka does: no session is begun, and one that exists goes on."""
    session_id = 0
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.sessions.close(request.session_id)
    else:
        _follower(node, request, context)
        session_id = request.session_id
    context.throttle_ms = debt_ms
    return encode_response(context.version, [], throttle_ms=debt_ms, session_id=session_id)


def _follower(node: Node, request: FetchRequest, context: RequestContext) -> tuple[Follower, bool]:
    """Return whose partitions are meant, and whether all of them are to be answered."""
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
    if replica_id >= 0 and session.give_up is not None:
        session.give_up()
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
        "timer",
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
        if node.fetch_quota.limits and not context.peer:
            self.max_bytes = min(self.max_bytes, node.fetch_quota.burst_bytes)
            # Half of it can be reached with whole batches, whatever their size.
            self.min_bytes = min(self.min_bytes, self.max_bytes // 2)
        self.pending: Pending[list[Chunk]] = Pending()

    def look(self) -> tuple[Found, int, bool]:
        """Read what the suspects have; return it, its size, and whether anything went wrong."""
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
        """Tell whether a look found what the answer waits for, or the answer does not wait."""
        if size >= self.min_bytes or failed:
            return True
        checks = self.allowance.is_spent and not size
        return self.request.max_wait_ms <= 0 and not checks

    def _is_drained(self, followed: Followed, result: FetchResult) -> bool:
        """Tell whether there is nothing more for now."""
        offset = followed.wanted.fetch_offset
        if self.in_session and followed.has_news(result):
            return False  # of the high watermark, which an answer is to say at last
        if self.request.replica_id >= 0:
            return followed.partition is None or followed.partition.log.end_offset <= offset
        return result.high_watermark <= offset

    def wait(self, found: Found) -> Pending[list[Chunk]]:
        """Look again whenever a partition moves, until the consumer's patience is over."""
        if not self.in_session:
            for followed in self.follower.followed.values():
                followed.attach(self.node.replica(followed.key, followed.wanted.partition))
        patience_ms = self.request.max_wait_ms
        if self.allowance.is_spent:
            patience_ms = max(patience_ms, CHECK_WAIT_MS)
        self.timer = self.node.timers.after(patience_ms, self._time_out)
        self.follower.waiting = self._look_again
        self.follower.give_up = self._time_out
        if self.request.replica_id >= 0:
            self.follower.hurry = self._hurry
            if found:
                self._hurry()
        self.pending.on_abandoned = self._let_go
        return self.pending

    def answer(self, found: Found, size: int) -> list[Chunk]:
        """Write the answer, and remember in the session what was said."""
        context, quota = self.context, self.node.fetch_quota
        if quota.limits and not context.peer:
            now_ms = self.node.timers.now_ms
            if size and (debt_ms := quota.debt_ms(context.client_id, now_ms)):
                return self._answer_empty(debt_ms)
            context.throttle_ms = quota.use(context.client_id, size, now_ms)
        session = self.follower if isinstance(self.follower, FetchSession) else None
        topics: dict[TopicKey, list[FetchResult]] = {}
        for followed, result in found:
            topics.setdefault(followed.key, []).append(result)
            if session is not None:
                followed.sent(result)
                if session.replica_id >= 0:
                    _leave_alone(session, followed, result)
                elif result.records is not None and not self.everything:
                    # Served last next time, so that one busy partition starves no other.
                    session.suspects.pop(followed, None)
                    session.suspects[followed] = None
        if session is None or session.closed:
            self.follower.close()  # again, for a session that was closed while it waited
        moved = [result.leader for _, result in found if result.leader is not None]
        return encode_response(
            context.version,
            list(topics.items()),
            throttle_ms=context.throttle_ms,
            session_id=0 if session is None else session.session_id,
            endpoints=endpoints_of(self.node, moved) if moved else (),
        )

    def _answer_empty(self, debt_ms: int) -> list[Chunk]:
        """Answer without records: while this fetch waited, another one used up the quota."""
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
        except Exception as error:  # noqa: BLE001 - whoever moved the partition is not to blame
            self._stop_waiting()
            self.pending.fail(error)
            return
        if at_last or self.is_over(size, failed=failed):
            self._stop_waiting()
            self.pending.complete_with(lambda: self.answer(found, size))

    def _hurry(self) -> None:
        """Wait for a moment only, for records to go with what there is to say."""
        timers = self.node.timers
        if self.timer.deadline_ms > timers.now_ms + NEWS_WAIT_MS:
            self.timer.cancel()
            self.timer = timers.after(NEWS_WAIT_MS, self._time_out)

    def _time_out(self) -> None:
        self._look_again(at_last=True)

    def _stop_waiting(self) -> None:
        self.timer.cancel()
        # A later fetch of the same session may wait by now, and must go on to.
        if self.follower.waiting == self._look_again:
            follower = self.follower
            follower.waiting = follower.give_up = follower.hurry = None

    def _let_go(self) -> None:
        """The consumer is gone: nothing may keep looking on its behalf."""
        self._stop_waiting()
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
        """Return the partition, led here or not where that is all the same to the consumer."""
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
        if wanted.last_fetched_epoch >= 0 and partition.leads:  # others may not know all epochs yet
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
            partition.high_watermark,
            partition.last_stable_offset,
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


def _leave_alone(session: FetchSession, followed: Followed, result: FetchResult) -> None:
    """Say no more of a partition to a follower that has to act on what it is told first."""
    if result.records is not None or result.error_code or result.diverging:
        followed.is_busy = True
        session.suspects.pop(followed, None)
