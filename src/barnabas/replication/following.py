"""How a broker copies the partitions that another one leads.

A fetcher keeps one fetch session with one leader (KIP-227). A request names the copies that have
moved, each with the offset it wants next and the epoch of the last batch it has; the leader sends
each of them more at most once before it is named again. To name an offset is to say that
everything below it is safe here, so under `flush=ack` a copy is named again only when its log
was synced. Copies do not wait for each other for long: what is synced in time goes out together,
what takes longer follows.

    fetcher                                 leader
      | a at 10, b at 7        ------------>  |
      |  <-----------  a: records 10 to 19    |
      | (append, sync)                        |
      | a at 20                ------------>  |  everything below 20 counts
      |              ... waits for more ...   |
      | b at 9                 ------------>  |  the request that waits is answered at once

So there may be two requests under way: one that waits at the leader and one that says more. Where
an answer is lost, the session is given up and everything is named anew. A request that was taken
for lost may still arrive, and have the leader believe that a copy is where it was long ago; so who
is out of sync without being told why names itself again after a while.
"""

from collections.abc import Callable
from typing import Protocol

from barnabas.effects import Address, Ask, Effect, Notice
from barnabas.model.errors import CorruptBatchError, ErrorCode, WireError
from barnabas.model.settings import ReplicationSettings
from barnabas.model.timers import Timer, Timers
from barnabas.protocol.fetch import Diverging, FetchPartition, FetchRequest, TopicKey
from barnabas.protocol.replica_fetch import (
    API_KEY,
    VERSION,
    Copied,
    encode_request,
    parse_response,
)
from barnabas.replication.throttle import Throttle

REQUESTS_MAX = 2
"""One that waits at the leader, and one that says more."""
ANSWER_TIMEOUT_MS = 5_000
LINGER_MS = 10
"""How long copies that are synced wait for those that are not yet."""
RETRY_FIRST_MS = 50
RETRY_MAX_MS = 1_000
REMIND_MS = 1_000
"""How long a copy may be out of sync with nothing to fetch before it says again where it is."""
THROTTLED_MS = 1_000
"""How long a throttled copy waits at most before it asks for the throttle's rate again."""
PARTITION_BYTES = 4 * 1024 * 1024
SESSION_EPOCH_MAX = (1 << 31) - 1
NO_SESSION = 0

Key = tuple[bytes, int]


class Copy(Protocol):
    """The local copy of a partition that somebody else leads."""

    @property
    def key(self) -> Key:
        """Topic id and number of the partition."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that is followed."""

    @property
    def is_in_sync(self) -> bool:
        """Whether the controller counts it among those in sync."""

    @property
    def is_synced(self) -> bool:
        """Whether everything in the log is as safe as the topic wants it."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Where the log starts and ends."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, -1 where there is none."""

    @property
    def high_watermark(self) -> int:
        """The last that was heard of the leader's; an answer may have come in vain."""

    def take(self, told: Copied) -> None:
        """Append what the leader sent, and hear how far it is.

        Raises `CorruptBatchError` where that is damaged, `OSError` where the disk refuses.
        """

    def cut(self, diverging: Diverging) -> None:
        """Give up what the leader does not have."""

    def start_over(self, told: Copied) -> None:
        """Go on where the leader's log starts now: it no longer has what comes next here."""


class Track:
    """One copy on its way."""

    __slots__ = ("copy", "failures", "named_in", "named_ms", "resume_ms")

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.named_in: int | None = None
        """The request since which the leader knows what is wanted; None where it does not."""
        self.named_ms = 0
        self.resume_ms = 0
        self.failures = 0

    def wanted(self, max_bytes: int) -> FetchPartition:
        """Return what the leader is asked for."""
        copy = self.copy
        start, end = copy.bounds
        return FetchPartition(
            copy.key[1],
            copy.leader_epoch,
            end,
            copy.last_epoch,
            start,
            max_bytes,
            copy.high_watermark,
        )


class Fetcher:
    """Copies some of the partitions that one broker leads."""

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
        self._given_up_id = NO_SESSION
        self._session_epoch = 0
        self._requests = 0
        self._under_way: list[int] = []
        self._timer: Timer | None = None
        self._losses = 0
        self._closed = False
        self._told_epoch = broker_epoch()
        """The broker epoch in which the leader knows this broker."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to copy."""
        return not self._tracks

    def follow(self, copy: Copy) -> None:
        """Copy a partition from here on, or once more, under another leader epoch."""
        track = Track(copy)
        self._tracks[copy.key] = self._unnamed[copy.key] = track
        self._syncing.pop(copy.key, None)
        self._forgotten.pop(copy.key, None)
        self._wake_after(1)

    def forget(self, key: Key) -> None:
        """Copy a partition no more."""
        track = self._tracks.pop(key, None)
        if track is None:
            return
        self._unnamed.pop(key, None)
        self._syncing.pop(key, None)
        if self._session_id != NO_SESSION:
            self._forgotten[key] = None
            self._wake_after(1)

    def out_of_sync(self, key: Key) -> None:
        """Hear that a copy does not count: the leader may have it wrong how far it is."""
        self._out_of_sync[key] = None
        if self._reminder is None and not self._closed:
            self._reminder = self._timers.after(REMIND_MS, self._remind)

    def _remind(self) -> None:
        self._reminder = None
        waiting, self._out_of_sync = self._out_of_sync, {}
        for key in waiting:
            track = self._tracks.get(key)
            if track is None or track.copy.is_in_sync:
                continue
            if track.named_in is not None and self._timers.now_ms - track.named_ms >= REMIND_MS:
                self._name_again(track)
            self.out_of_sync(key)
        self._wake_after(1)

    def synced(self, key: Key) -> None:
        """Hear that a copy is safe up to its end: the leader is to know."""
        if self._syncing.pop(key, 0) == 0:
            return
        if self._syncing:
            self._wake_after(LINGER_MS)
        else:
            self._send()

    def close(self) -> None:
        """Do nothing any more; answers to come are ignored."""
        self._closed = True
        self._tracks.clear()
        self._unnamed.clear()
        self._syncing.clear()
        self._stop_timer()
        if self._reminder is not None:
            self._reminder.cancel()

    def _send(self) -> None:
        """Name what has moved, and leave a request with the leader to wait for more."""
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
            del self._unnamed[track.copy.key]
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
        """Name everything anew where this broker was registered anew.

        A leader lets nobody join the ISR whom it knows in another broker epoch (KIP-903), and what
        does not move is not named again by itself.
        """
        broker_epoch = self._broker_epoch()
        if broker_epoch != self._told_epoch:
            self._told_epoch = broker_epoch
            self._begin_anew()

    def _needs_no_request(self) -> bool:
        """Tell whether one waits at the leader already, or there is nothing to wait for."""
        return bool(self._under_way) or not self._tracks

    def _to_name(self) -> list[Track]:
        now_ms = self._timers.now_ms
        named: list[Track] = []
        for key, track in self._unnamed.items():
            delay_ms = track.resume_ms - now_ms
            if not track.copy.is_in_sync:
                wait_ms = min(self._throttle.delay_ms(now_ms), THROTTLED_MS)
                delay_ms = max(delay_ms, wait_ms)
            if not track.copy.is_synced:
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
            topics.setdefault(track.copy.key[0], []).append(wanted)
        forgotten: dict[TopicKey, list[int]] = {}
        for topic_id, number in self._forgotten:
            forgotten.setdefault(topic_id, []).append(number)
        return FetchRequest(
            self._me,
            settings.fetch_wait_ms,
            1,
            settings.fetch_bytes,
            0,
            self._session_id or self._given_up_id,
            self._session_epoch,
            list(topics.items()),
            list(forgotten.items()),
            "",
            self._broker_epoch(),
        )

    def _answered(self, number: int, answer: memoryview | None) -> None:
        if self._closed or number not in self._under_way:
            return  # of a session that was given up
        self._under_way.remove(number)
        if answer is None:
            self._lose_session()
            return
        try:
            response = parse_response(answer)
        except WireError as error:
            facts = {"lane": self._lane, "problem": str(error)}
            self._outbox.append(Notice("error", "a leader's answer makes no sense", facts))
            self._lose_session()
            return
        if response.error_code:
            self._lose_session()
            return
        self._losses = 0
        self._session_id = response.session_id
        for told in response.results:
            track = self._tracks.get((told.topic_id, told.partition))
            if track is not None and track.named_in is not None and number >= track.named_in:
                self._hear(track, told)
        if self._syncing:
            self._wake_after(LINGER_MS)
        else:
            self._send()

    def _hear(self, track: Track, told: Copied) -> None:
        """Go along with what a leader says of one partition."""
        try:
            if told.diverging is not None:
                track.copy.cut(told.diverging)
            elif told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                track.copy.start_over(told)
            elif told.error_code:
                self._back_off(track)
                return
            else:
                if not track.copy.is_in_sync:
                    self._throttle.use(len(told.records), self._timers.now_ms)
                track.copy.take(told)
                if not told.records:
                    return  # nothing new, so the leader still knows what is wanted
        except (CorruptBatchError, OSError) as error:
            self._complain(track, error)
            self._back_off(track)
            return
        track.failures = 0
        self._name_again(track)

    def _name_again(self, track: Track) -> None:
        key = track.copy.key
        track.named_in = None
        self._unnamed[key] = track
        if not track.copy.is_synced:
            self._syncing[key] = None

    def _back_off(self, track: Track) -> None:
        """Ask again later: either side may not know yet who leads."""
        delay_ms = min(RETRY_FIRST_MS << track.failures, RETRY_MAX_MS)
        track.failures = min(track.failures + 1, 10)
        track.resume_ms = self._timers.now_ms + delay_ms
        self._name_again(track)

    def _complain(self, track: Track, error: Exception) -> None:
        if track.failures == 0:
            topic_id, number = track.copy.key
            facts = {"topic_id": topic_id.hex(), "partition": number, "problem": str(error)}
            self._outbox.append(Notice("error", "cannot take what a leader sent", facts))

    def _lose_session(self) -> None:
        """Begin anew after a while, with everything: nobody knows what the leader heard."""
        self._begin_anew()
        delay_ms = min(RETRY_FIRST_MS << self._losses, RETRY_MAX_MS)
        self._losses = min(self._losses + 1, 10)
        self._wake_after(delay_ms)

    def _begin_anew(self) -> None:
        if self._session_id != NO_SESSION:
            self._given_up_id = self._session_id  # for the leader to close it
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
    """Return the number that follows in a session; 0 would begin another."""
    return 1 if epoch >= SESSION_EPOCH_MAX else epoch + 1
