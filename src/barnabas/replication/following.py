"""How a broker fetches the partitions that another broker leads.

A fetcher keeps one fetch session with one leader (KIP-227). A request names the replicas whose
fetch offset has moved, each with the offset it wants next and the epoch of its last batch. The
leader sends records for each of them at most once before it is named again. A fetch offset tells
the leader that everything below it is durable here. So under `flush=ack` a replica is named again
only once its log is synced. Replicas wait for each other only briefly: those that are synced in
time go into the same request, the others follow in the next.

    fetcher                                 leader
      | a at 10, b at 7        ------------>  |
      |  <-----------  a: records 10 to 19    |
      | (append, sync)                        |
      | a at 20                ------------>  |  a has everything below 20
      |              ... waits for more ...   |
      | b at 9                 ------------>  |  the waiting request is answered at once

So up to two requests are in flight: one that waits at the leader and one that brings news. Where a
response is lost, the fetcher closes the session and names every replica in a new one. The lost
request may still arrive, and then the leader has an old fetch offset of a replica. Therefore the
fetcher names a replica that is out of sync again after a while.
"""

from collections.abc import Callable
from typing import Protocol

from barnabas.effects import Address, Ask, Effect, Notice
from barnabas.model.errors import CorruptBatchError, ErrorCode, WireError
from barnabas.model.settings import ReplicationSettings
from barnabas.model.timers import Timer, Timers
from barnabas.protocol.fetch import Diverging, FetchPartition, FetchRequest, TopicKey
from barnabas.protocol.replica_fetch_codec import (
    API_KEY,
    VERSION,
    Copied,
    encode_request,
    parse_response,
)
from barnabas.replication.throttle import Throttle

REQUESTS_MAX = 2
"""One that waits at the leader, and one that carries new fetch offsets."""
ANSWER_TIMEOUT_MS = 5_000
LINGER_MS = 10
"""How long replicas that are synced wait for those that are not."""
RETRY_FIRST_MS = 50
RETRY_MAX_MS = 1_000
REMIND_MS = 1_000
"""How long a replica may be out of sync with nothing to fetch before it repeats its offset."""
THROTTLED_MS = 1_000
"""How long a throttled replica waits at most before it looks at the throttle again."""
PARTITION_BYTES = 4 * 1024 * 1024
SESSION_EPOCH_MAX = (1 << 31) - 1
NO_SESSION = 0

Key = tuple[bytes, int]


class Replica(Protocol):
    """A local replica of a partition that another broker leads."""

    @property
    def key(self) -> Key:
        """Topic id and number of the partition."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that is followed."""

    @property
    def is_in_sync(self) -> bool:
        """Whether the controller counts it as in sync."""

    @property
    def is_synced(self) -> bool:
        """Whether the log is as durable as the topic's `flush` setting asks for."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The start and end offsets of the log."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, -1 if there is none."""

    @property
    def high_watermark(self) -> int:
        """The last high watermark of the leader that was applied, not just received."""

    def apply(self, fetched: Copied) -> None:
        """Append what the leader sent, and apply its high watermark and log start offset.

        Raises `CorruptBatchError` if a batch is damaged, `OSError` if the disk refuses.
        """

    def truncate(self, diverging: Diverging) -> None:
        """Truncate the log to the point where its leader epochs diverge from the leader's."""

    def restart(self, fetched: Copied) -> None:
        """Continue at the start of the leader's log, which no longer has the fetch offset."""


class Track:
    """The progress of one replica."""

    __slots__ = ("failures", "named_in", "named_ms", "replica", "resume_ms")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.named_in: int | None = None
        """The request that told the leader the fetch offset; None if none has."""
        self.named_ms = 0
        self.resume_ms = 0
        self.failures = 0

    def wanted(self, max_bytes: int) -> FetchPartition:
        """Return the partition's part of a fetch request."""
        replica = self.replica
        start, end = replica.bounds
        return FetchPartition(
            replica.key[1],
            replica.leader_epoch,
            end,
            replica.last_epoch,
            start,
            max_bytes,
            replica.high_watermark,
        )


class Fetcher:
    """Fetches some of the partitions that one broker leads."""

    def __init__(
        self,
        me: int,
        lane: str,
        settings: ReplicationSettings,
        timers: Timers,
        outbox: list[Effect],
        throttle: Throttle,
        leader: Callable[[], Address | None],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._me = me
        self._lane = lane
        self._settings = settings
        self._timers = timers
        self._outbox = outbox
        self._throttle = throttle
        self._leader = leader
        self._broker_epoch = broker_epoch
        self._tracks: dict[Key, Track] = {}
        self._unnamed: dict[Key, Track] = {}
        self._syncing: dict[Key, None] = {}
        self._out_of_sync: dict[Key, None] = {}
        self._reminder: Timer | None = None
        self._forgotten: dict[Key, None] = {}
        self._session_id = NO_SESSION
        self._closed_id = NO_SESSION
        self._session_epoch = 0
        self._requests = 0
        self._under_way: list[int] = []
        self._timer: Timer | None = None
        self._failures = 0
        self._closed = False
        self._sent_epoch = broker_epoch()
        """The broker epoch that this broker last sent to the leader."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to fetch."""
        return not self._tracks

    def follow(self, replica: Replica) -> None:
        """Start to fetch a partition, or start again under another leader epoch."""
        track = Track(replica)
        self._tracks[replica.key] = self._unnamed[replica.key] = track
        self._syncing.pop(replica.key, None)
        self._forgotten.pop(replica.key, None)
        self._wake_after(1)

    def forget(self, key: Key) -> None:
        """Stop fetching a partition."""
        track = self._tracks.pop(key, None)
        if track is None:
            return
        self._unnamed.pop(key, None)
        self._syncing.pop(key, None)
        if self._session_id != NO_SESSION:
            self._forgotten[key] = None
            self._wake_after(1)

    def out_of_sync(self, key: Key) -> None:
        """Repeat a replica's fetch offset while it is out of sync, in case the leader lost it."""
        self._out_of_sync[key] = None
        if self._reminder is None and not self._closed:
            self._reminder = self._timers.after(REMIND_MS, self._remind)

    def _remind(self) -> None:
        self._reminder = None
        waiting, self._out_of_sync = self._out_of_sync, {}
        for key in waiting:
            track = self._tracks.get(key)
            if track is None or track.replica.is_in_sync:
                continue
            if track.named_in is not None and self._timers.now_ms - track.named_ms >= REMIND_MS:
                self._name_again(track)
            self.out_of_sync(key)
        self._wake_after(1)

    def synced(self, key: Key) -> None:
        """Tell the leader that a replica's log is synced up to its end."""
        if self._syncing.pop(key, 0) == 0:
            return
        if self._syncing:
            self._wake_after(LINGER_MS)
        else:
            self._send()

    def close(self) -> None:
        """Stop fetching; responses that arrive later are ignored."""
        self._closed = True
        self._tracks.clear()
        self._unnamed.clear()
        self._syncing.clear()
        self._stop_timer()
        if self._reminder is not None:
            self._reminder.cancel()

    def _send(self) -> None:
        """Name the replicas that have moved, and keep one request waiting at the leader."""
        self._stop_timer()
        self._notice_broker_epoch()
        opening = self._session_id == NO_SESSION
        if self._closed or len(self._under_way) >= (1 if opening else REQUESTS_MAX):
            return
        leader = self._leader()
        if leader is None:
            self._wake_after(RETRY_MAX_MS)
            return
        named = self._to_name()
        if not named and (opening or (not self._forgotten and self._needs_no_request())):
            return
        self._requests += 1
        number = self._requests
        for track in named:
            track.named_in, track.named_ms = number, self._timers.now_ms
            del self._unnamed[track.replica.key]
        body = encode_request(self._request(named))
        self._forgotten.clear()
        self._session_epoch = next_epoch(self._session_epoch)
        self._under_way.append(number)
        timeout_ms = self._settings.fetch_wait_ms + ANSWER_TIMEOUT_MS
        self._outbox.append(
            Ask(
                leader,
                self._lane,
                API_KEY,
                VERSION,
                body,
                timeout_ms,
                lambda answer: self._answered(number, answer),
            )
        )

    def _notice_broker_epoch(self) -> None:
        """Name every replica again after this broker registered again.

        A leader adds a replica to the ISR only if it fetched in its present broker epoch (KIP-903),
        and a replica that does not move is not named again otherwise.
        """
        broker_epoch = self._broker_epoch()
        if broker_epoch != self._sent_epoch:
            self._sent_epoch = broker_epoch
            self._restart_session()

    def _needs_no_request(self) -> bool:
        """Tell whether a request waits at the leader already, or there is nothing to wait for."""
        return bool(self._under_way) or not self._tracks

    def _to_name(self) -> list[Track]:
        now_ms = self._timers.now_ms
        named: list[Track] = []
        for key, track in self._unnamed.items():
            delay_ms = track.resume_ms - now_ms
            if not track.replica.is_in_sync:
                wait_ms = min(self._throttle.delay_ms(now_ms), THROTTLED_MS)
                delay_ms = max(delay_ms, wait_ms)
            if not track.replica.is_synced:
                self._syncing[key] = None
            elif delay_ms > 0:
                self._wake_after(delay_ms)
            else:
                named.append(track)
        return named

    def _request(self, named: list[Track]) -> FetchRequest:
        settings = self._settings
        topics: dict[TopicKey, list[FetchPartition]] = {}
        for track in named:
            wanted = track.wanted(min(PARTITION_BYTES, settings.fetch_bytes))
            topics.setdefault(track.replica.key[0], []).append(wanted)
        forgotten: dict[TopicKey, list[int]] = {}
        for topic_id, number in self._forgotten:
            forgotten.setdefault(topic_id, []).append(number)
        return FetchRequest(
            self._me,
            settings.fetch_wait_ms,
            1,
            settings.fetch_bytes,
            0,
            self._session_id or self._closed_id,
            self._session_epoch,
            list(topics.items()),
            list(forgotten.items()),
            "",
            self._broker_epoch(),
        )

    def _answered(self, number: int, answer: memoryview | None) -> None:
        if self._closed or number not in self._under_way:
            return  # of a session that was closed
        self._under_way.remove(number)
        if answer is None:
            self._lose_session()
            return
        try:
            response = parse_response(answer)
        except WireError as error:
            facts = {"lane": self._lane, "problem": str(error)}
            self._outbox.append(Notice("error", "invalid fetch response from leader", facts))
            self._lose_session()
            return
        if response.error_code:
            self._lose_session()
            return
        self._failures = 0
        self._session_id = response.session_id
        for fetched in response.results:
            track = self._tracks.get((fetched.topic_id, fetched.partition))
            if track is not None and track.named_in is not None and number >= track.named_in:
                self._apply(track, fetched)
        if self._syncing:
            self._wake_after(LINGER_MS)
        else:
            self._send()

    def _apply(self, track: Track, fetched: Copied) -> None:
        """Apply what the leader sent for one partition."""
        replica = track.replica
        try:
            if fetched.diverging is not None:
                replica.truncate(fetched.diverging)
            elif fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                replica.restart(fetched)
            elif fetched.error_code:
                self._back_off(track)
                return
            else:
                if not replica.is_in_sync:
                    self._throttle.use(len(fetched.records), self._timers.now_ms)
                replica.apply(fetched)
                if not fetched.records:
                    return  # the fetch offset that the leader knows is still right
        except (CorruptBatchError, OSError) as error:
            self._report(track, error)
            self._back_off(track)
            return
        track.failures = 0
        self._name_again(track)

    def _name_again(self, track: Track) -> None:
        key = track.replica.key
        track.named_in = None
        self._unnamed[key] = track
        if not track.replica.is_synced:
            self._syncing[key] = None

    def _back_off(self, track: Track) -> None:
        """Fetch again later: either broker may not know the leader yet."""
        delay_ms = min(RETRY_FIRST_MS << track.failures, RETRY_MAX_MS)
        track.failures = min(track.failures + 1, 10)
        track.resume_ms = self._timers.now_ms + delay_ms
        self._name_again(track)

    def _report(self, track: Track, error: Exception) -> None:
        if track.failures == 0:
            topic_id, number = track.replica.key
            facts = {"topic_id": topic_id.hex(), "partition": number, "problem": str(error)}
            self._outbox.append(Notice("error", "cannot append what the leader sent", facts))

    def _lose_session(self) -> None:
        """Restart the session after a delay: the leader may or may not have got the request."""
        self._restart_session()
        delay_ms = min(RETRY_FIRST_MS << self._failures, RETRY_MAX_MS)
        self._failures = min(self._failures + 1, 10)
        self._wake_after(delay_ms)

    def _restart_session(self) -> None:
        if self._session_id != NO_SESSION:
            self._closed_id = self._session_id  # so that the leader closes it
        self._session_id, self._session_epoch = NO_SESSION, 0
        self._under_way.clear()
        self._forgotten.clear()
        for track in self._tracks.values():
            track.named_in = None
        self._unnamed = dict(self._tracks)

    def _wake_after(self, delay_ms: int) -> None:
        due_ms = self._timers.now_ms + max(1, delay_ms)
        if self._timer is not None:
            if self._timer.action is not None and self._timer.deadline_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer = self._timers.after(delay_ms, self._send)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def next_epoch(epoch: int) -> int:
    """Return the epoch that follows in a session; 0 would open another session."""
    return 1 if epoch >= SESSION_EPOCH_MAX else epoch + 1
