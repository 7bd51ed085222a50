"""Fetch sessions (KIP-227): a consumer names its partitions once, then only what changed.

A session keeps, beside what the consumer wants, which partitions may have something for it. A
partition that moves tells the sessions that follow it, so a fetch costs what changed, not what
is followed: one look at each partition on the list of suspects.
"""

from collections.abc import Callable, Iterable
from random import Random

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.partition import Partition
from barnabas.protocol.fetch import FetchPartition, FetchResult, TopicKey

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_MAX = (1 << 31) - 1


class Followed:
    """One partition as one consumer follows it."""

    __slots__ = ("_sent", "follower", "key", "partition", "wanted")

    def __init__(self, follower: "Follower", key: TopicKey, wanted: FetchPartition) -> None:
        self.follower = follower
        self.key = key
        self.wanted = wanted
        self.partition: Partition | None = None
        self._sent = (-1, -1, -1)

    def attach(self, partition: Partition) -> None:
        """Hear of the partition's progress from here on."""
        if self.partition is not partition:
            self.detach()
            self.partition = partition
            partition.watchers[self] = None

    def detach(self) -> None:
        """Hear of it no more."""
        if self.partition is not None:
            self.partition.watchers.pop(self, None)
            self.partition = None

    def on_progress(self) -> None:
        """Become a suspect, and wake a fetch that waits."""
        self.follower.suspects[self] = None
        if self.follower.waiting is not None:
            self.follower.waiting()

    def has_news(self, result: FetchResult) -> bool:
        """Tell whether a result says anything that the consumer does not know."""
        known = (result.high_watermark, result.last_stable_offset, result.log_start_offset)
        return result.records is not None or result.error_code != 0 or known != self._sent

    def sent(self, result: FetchResult) -> None:
        """Remember what the consumer was told."""
        self._sent = (result.high_watermark, result.last_stable_offset, result.log_start_offset)


class Follower:
    """The partitions that one consumer fetches: for one request, or for a session's life."""

    def __init__(self) -> None:
        self.followed: dict[tuple[TopicKey, int], Followed] = {}
        self.suspects: dict[Followed, None] = {}
        self.waiting: Callable[[], None] | None = None
        self.closed = False

    def follow(self, topics: Iterable[tuple[TopicKey, list[FetchPartition]]]) -> None:
        """Add partitions, or change from where they are wanted."""
        for key, partitions in topics:
            for wanted in partitions:
                place = (key, wanted.partition)
                followed = self.followed.get(place)
                if followed is None:
                    followed = self.followed[place] = Followed(self, key, wanted)
                else:
                    followed.wanted = wanted
                self.suspects[followed] = None

    def forget(self, forgotten: Iterable[tuple[TopicKey, list[int]]]) -> None:
        """Leave partitions out from now on."""
        for key, indexes in forgotten:
            for index in indexes:
                followed = self.followed.pop((key, index), None)
                if followed is not None:
                    followed.detach()
                    self.suspects.pop(followed, None)

    def close(self) -> None:
        """Hear of nothing more, and leave no circles behind for the garbage collector."""
        self.closed = True
        for followed in self.followed.values():
            followed.detach()
        self.followed.clear()
        self.suspects.clear()
        self.waiting = None


class FetchSession(Follower):
    """A follower that outlives its request."""

    def __init__(self, session_id: int, *, by_id: bool) -> None:
        super().__init__()
        self.session_id = session_id
        self.by_id = by_id
        self.next_epoch = 1


class FetchSessions:
    """Every session, the least recently used first."""

    def __init__(self, slots: int, rng: Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, *, by_id: bool) -> FetchSession | None:
        """Start a session, at the cost of the one that was used the longest ago."""
        if self._slots <= 0:
            return None
        while len(self._sessions) >= self._slots:
            self.close(next(iter(self._sessions)))
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._rng.randint(1, EPOCH_MAX)
        session = self._sessions[session_id] = FetchSession(session_id, by_id=by_id)
        return session

    def resume(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession:
        """Return a session for its next request; raise where it is not known or out of step."""
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if epoch != session.next_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        self._sessions[session_id] = self._sessions.pop(session_id)  # used last
        return session

    def close(self, session_id: int) -> None:
        """End a session; nothing happens where there is none."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
