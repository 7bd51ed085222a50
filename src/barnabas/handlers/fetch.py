"""Fetch (key 1), versions 4 to 18: sessions from 7 (KIP-227), topic ids from 13 (KIP-516).

Whole batches are returned, from the one that holds the offset on, and at least one even over the
limits. The answer waits until `min_bytes` are there, something went wrong, or `max_wait` is over.
With read_committed nothing is returned from the last stable offset on, and the transactions that
were aborted are listed: the client leaves out their records.
Deviations: no follower fetching and no diverging epochs yet; followers do not exist.
"""

from collections.abc import Iterable

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
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
from barnabas.protocol.fetch import (
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResult,
    TopicKey,
    encode_response,
)

READ_COMMITTED = 1

Found = list[tuple[Followed, FetchResult]]


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> list[Chunk] | Pending[list[Chunk]]:
    """Answer at once where there is enough, else wait."""
    try:
        follower, everything = _follower(node, request, context)
    except ApiError as error:
        return encode_response(context.version, [], error_code=error.code)
    fetch = Fetch(node, request, context, follower, everything=everything)
    found, size, failed = fetch.look()
    enough = size >= request.min_bytes or failed or request.max_wait_ms <= 0
    if enough or not follower.followed:
        return fetch.answer(found, size)
    return fetch.wait()


def _follower(node: Node, request: FetchRequest, context: RequestContext) -> tuple[Follower, bool]:
    """Return whose partitions are meant, and whether all of them are to be answered."""
    by_id = context.version >= TOPIC_IDS_FROM
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH and request.topics:
            session = node.sessions.open(by_id=by_id)
        follower = session or Follower()
        follower.follow(request.topics)
        return follower, True
    session = node.sessions.resume(request.session_id, request.session_epoch, by_id=by_id)
    session.follow(request.topics)
    session.forget(request.forgotten)
    return session, False


class Fetch:
    """One request, until it is answered."""

    __slots__ = (
        "committed_only",
        "context",
        "everything",
        "follower",
        "in_session",
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
        self.pending: Pending[list[Chunk]] = Pending()

    def look(self) -> tuple[Found, int, bool]:
        """Read what the suspects have; return it, its size, and whether anything went wrong."""
        follower = self.follower
        budget = min(self.request.max_bytes, self.node.settings.performance.max_fetch_bytes)
        found: Found = []
        size, failed = 0, False
        candidates: Iterable[Followed] = (
            follower.followed.values() if self.everything else list(follower.suspects)
        )
        for followed in candidates:
            result = self._read(followed, budget - size, first=size == 0)
            if result.records is not None:
                size += result.records.length
            elif result.error_code:
                failed = True
            elif result.high_watermark <= followed.wanted.fetch_offset:
                follower.suspects.pop(followed, None)
            if self.everything or followed.has_news(result):
                found.append((followed, result))
        return found, size, failed

    def wait(self) -> Pending[list[Chunk]]:
        """Look again whenever a partition moves, until the consumer's patience is over."""
        if not self.in_session:
            for followed in self.follower.followed.values():
                followed.attach(self.node.find(followed.key, followed.wanted.partition))
        self.timer = self.node.timers.after(self.request.max_wait_ms, self._time_out)
        self.follower.waiting = self._look_again
        self.pending.on_abandoned = self._let_go
        return self.pending

    def answer(self, found: Found, size: int) -> list[Chunk]:
        """Write the answer, and remember in the session what was said."""
        session = self.follower if isinstance(self.follower, FetchSession) else None
        topics: dict[TopicKey, list[FetchResult]] = {}
        for followed, result in found:
            topics.setdefault(followed.key, []).append(result)
            if session is not None:
                followed.sent(result)
                if result.records is not None and not self.everything:
                    # Served last next time, so that one busy partition starves no other.
                    session.suspects.pop(followed, None)
                    session.suspects[followed] = None
        if session is None or session.closed:
            self.follower.close()  # again, for a session that was closed while it waited
        context = self.context
        context.throttle_ms = self.node.fetch_quota.use(context.client_id, size, context.now_ms)
        return encode_response(
            context.version,
            list(topics.items()),
            throttle_ms=context.throttle_ms,
            session_id=0 if session is None else session.session_id,
        )

    def _look_again(self, *, at_last: bool = False) -> None:
        try:
            found, size, failed = self.look()
        except Exception as error:  # noqa: BLE001 - whoever moved the partition is not to blame
            self._stop_waiting()
            self.pending.fail(error)
            return
        if size >= self.request.min_bytes or failed or at_last:
            self._stop_waiting()
            self.pending.complete_with(lambda: self.answer(found, size))

    def _time_out(self) -> None:
        self._look_again(at_last=True)

    def _stop_waiting(self) -> None:
        self.timer.cancel()
        # A later fetch of the same session may wait by now, and must go on to.
        if self.follower.waiting == self._look_again:
            self.follower.waiting = None

    def _let_go(self) -> None:
        """The consumer is gone: nothing may keep looking on its behalf."""
        self._stop_waiting()
        if not self.in_session:
            self.follower.close()

    def _read(self, followed: Followed, budget: int, *, first: bool) -> FetchResult:
        wanted = followed.wanted
        try:
            partition = self.node.find(followed.key, wanted.partition)
        except ApiError as error:
            followed.detach()
            return FetchResult(wanted.partition, error.code)
        if self.in_session:
            followed.attach(partition)
        try:
            if wanted.leader_epoch != partition.leader_epoch:
                partition.check_leader_epoch(wanted.leader_epoch)
            records = partition.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, budget),
                committed_only=self.committed_only,
                at_least_one=first,
            )
            aborted = None
            if self.committed_only:
                aborted = partition.aborted(wanted.fetch_offset, records)
        except ApiError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                high, start = partition.high_watermark, partition.log.start_offset
                return FetchResult(wanted.partition, error.code, high, -1, start)
            return FetchResult(wanted.partition, error.code)
        return FetchResult(
            wanted.partition,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log.start_offset,
            records,
            aborted,
        )
