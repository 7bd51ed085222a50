"""Fetch sessions (KIP-227): a consumer names its partitions once, then only what changed.

Besides the consumer's partitions, a session keeps a list of suspects: partitions that may have
something for the consumer. A partition that moves notifies the sessions that follow it. A fetch
looks at the suspects only, so its cost depends on what changed, not on how much is followed.

Sessions of consumers do not evict those of followers. A follower gets each partition at most once
before it names it again: until then it processes what it was sent.
"""

from collections.abc import Iterable
from random import Random
from weakref import WeakSet

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.steps import Steps, Work
from barnabas.node.partitions.partition import Partition
from barnabas.node.record_waiting import RecordWait
from barnabas.protocol.fetch import UNKNOWN_HIGH_WATERMARK, FetchPartition, FetchResult, TopicKey

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_MAX = (1 << 31) - 1
CONSUMER = -1
NOTHING = (-1, -1, -1)
LOOK_UNITS = 20
"""The cost of having a fetch look again."""
NEWS_WAIT_MS = 10
"""How long a follower's fetch waits for records before it only tells a new high watermark. The
whole time is waited only while the follower knows the high watermark (KIP-1166)."""


class Followed:
    """One partition as one consumer follows it."""

    __slots__ = ("_sent", "follower", "is_busy", "key", "partition", "wanted")

    def __init__(self, follower: "Follower", key: TopicKey, wanted: FetchPartition) -> None:
        self.follower = follower
        self.key = key
        self.wanted = wanted
        self.partition: Partition | None = None
        self.is_busy = False
        """Whether the partition was sent to a follower that has not asked for it again."""
        self._sent = NOTHING

    def want(self, wanted: FetchPartition) -> None:
        """Continue from another offset, and with the high watermark that a follower says it knows.

        A follower may have ignored an answer.
        """
        if wanted.high_watermark != UNKNOWN_HIGH_WATERMARK and self.follower.replica_id >= 0:
            self._sent = (wanted.high_watermark, *self._sent[1:])
        self.wanted = wanted
        self.is_busy = False

    def attach(self, partition: Partition) -> None:
        """Watch the partition's progress."""
        if self.partition is not partition:
            self.detach()
            self.partition = partition
            if self.follower.replica_id >= 0:
                partition.watermark.followers[self] = None
            else:
                partition.watermark.watchers[self] = None

    def detach(self) -> None:
        """Stop watching the partition."""
        if self.partition is not None:
            self.partition.watermark.watchers.pop(self, None)
            self.partition.watermark.followers.pop(self, None)
            self.partition = None

    def on_retired(self) -> None:
        """Release the partition, and with it open files: the consumer may never fetch again."""
        self.on_progress()
        self.detach()

    def on_progress(self) -> None:
        """Become a suspect, and wake a fetch that waits."""
        if self.is_busy:
            return
        self.follower.suspects[self] = None
        wait = self.follower.wait
        if wait is not None:
            wait.wake()

    def on_committed(self) -> None:
        """Become a suspect, so that an answer soon tells the follower the high watermark."""
        if self.is_busy:
            return
        self.follower.suspects[self] = None
        wait = self.follower.wait
        if wait is not None:
            wait.shorten(NEWS_WAIT_MS)

    def has_news(self, result: FetchResult) -> bool:
        """Tell whether a result has anything that the consumer does not know."""
        known = (result.high_watermark, result.last_stable_offset, result.log_start_offset)
        return (
            result.records is not None
            or result.error_code != 0
            or known != self._sent
            or result.diverging is not None
            or result.preferred_replica >= 0
        )

    def sent(self, result: FetchResult) -> None:
        """Remember what the consumer was sent, unless it will act on something else."""
        if result.diverging is not None:
            return
        self._sent = (result.high_watermark, result.last_stable_offset, result.log_start_offset)


class Follower:
    """The partitions that one consumer fetches: for one request, or for a session's life."""

    def __init__(self, replica_id: int = CONSUMER) -> None:
        self.replica_id = replica_id
        self.followed: dict[tuple[TopicKey, int], Followed] = {}
        self.suspects: dict[Followed, None] = {}
        self.wait: RecordWait | None = None
        """The wait of the request that is not answered yet."""
        self.closed = False
        self.rights_version = 0
        """The authorizer's version when the consumer's rights were looked at last."""

    def follow(self, topics: Iterable[tuple[TopicKey, list[FetchPartition]]]) -> None:
        """Add partitions, or change the offsets from which they are fetched."""
        for key, partitions in topics:
            for wanted in partitions:
                place = (key, wanted.partition)
                followed = self.followed.get(place)
                if followed is None:
                    followed = self.followed[place] = Followed(self, key, wanted)
                else:
                    followed.want(wanted)
                self.suspects[followed] = None

    def forget(self, forgotten: Iterable[tuple[TopicKey, list[int]]]) -> None:
        """Remove partitions."""
        for key, indexes in forgotten:
            for index in indexes:
                followed = self.followed.pop((key, index), None)
                if followed is not None:
                    followed.detach()
                    self.suspects.pop(followed, None)

    def close(self) -> None:
        """Stop watching all partitions, and leave no cycles for the garbage collector."""
        self.closed = True
        for followed in self.followed.values():
            followed.detach()
        self.followed.clear()
        self.suspects.clear()
        self.wait = None


class FetchSession(Follower):
    """A follower that outlives its request."""

    def __init__(
        self, session_id: int, *, by_id: bool, replica_id: int = CONSUMER, replica_epoch: int = -1
    ) -> None:
        super().__init__(replica_id)
        self.replica_epoch = replica_epoch
        self.session_id = session_id
        self.by_id = by_id
        self.next_epoch = 1


class FetchSessions:
    """Every session, the least recently used first."""

    def __init__(self, slots: int, rng: Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        self._of_replicas: dict[int, FetchSession] = {}
        self.guarded: WeakSet[RecordWait] = WeakSet()
        """The waits of fetches that must look again when rights change."""

    def __len__(self) -> int:
        return len(self._sessions) + len(self._of_replicas)

    def open(self, *, by_id: bool) -> FetchSession | None:
        """Start a session; if there are too many, drop the least recently used one."""
        if self._slots <= 0:
            return None
        while len(self._sessions) >= self._slots:
            self.close(next(iter(self._sessions)))
        session_id = self._new_id()
        session = self._sessions[session_id] = FetchSession(session_id, by_id=by_id)
        return session

    def look_again(self) -> Steps[None]:
        """Have the fetches that wait check whether they may still read."""
        work = Work()
        for wait in list(self.guarded):
            wait.wake()
            if work.spend(LOOK_UNITS):
                yield None

    def open_for_replica(self, replica_id: int, replica_epoch: int) -> FetchSession:
        """Start a session of a follower, and end the sessions of its earlier processes."""
        for known in list(self._of_replicas.values()):
            if known.replica_id == replica_id and known.replica_epoch != replica_epoch:
                self.close(known.session_id)
        session_id = self._new_id()
        session = self._of_replicas[session_id] = FetchSession(
            session_id, by_id=True, replica_id=replica_id, replica_epoch=replica_epoch
        )
        return session

    def _new_id(self) -> int:
        session_id = 0
        while session_id == 0 or session_id in self._sessions or session_id in self._of_replicas:
            session_id = self._rng.randint(1, EPOCH_MAX)
        return session_id

    def resume(
        self, session_id: int, epoch: int, *, by_id: bool, replica_id: int = CONSUMER
    ) -> FetchSession:
        """Return a session for its next request; raise if it is unknown or the epoch is wrong."""
        sessions = self._sessions if replica_id < 0 else self._of_replicas
        session = sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if epoch != session.next_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        sessions[session_id] = sessions.pop(session_id)  # used last
        return session

    def close(self, session_id: int) -> None:
        """End a session; nothing happens if there is none."""
        session = self._sessions.pop(session_id, None) or self._of_replicas.pop(session_id, None)
        if session is not None:
            session.close()
