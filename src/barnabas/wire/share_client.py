"""A member of a share group: takes records, and says what became of each (KIP-932).

    consumer = ShareConsumer({"bootstrap.servers": "127.0.0.1:9092"}, "jobs", ["jobs"])
    for record in consumer.take(10, timeout_s=1):
        consumer.acknowledge(record, AckKind.ACCEPT)
    consumer.close()

One thread talks to all leaders side by side, one request at a time to each. It fetches only while
the program waits for records: a record that the program does not work on would be locked for no
reason. Acknowledgements go out with the next fetch, or alone when none is due. Another thread sends
the heartbeats. Everything is safe to call from several threads.

An answer is read when its first bytes are there; a leader that stops in the middle of one holds up
the others for the answer timeout.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from barnabas.logs import get
from barnabas.wire.cluster_wire import Node
from barnabas.wire.link import ANSWER_TIMEOUT_S
from barnabas.wire.link_security import link_security
from barnabas.wire.pipeline import Pipeline
from barnabas.wire.share_heartbeats import ShareHeartbeats
from barnabas.wire.share_leader import RETRY_S, ShareLeader
from barnabas.wire.share_membership import ShareMembership
from barnabas.wire.share_routes import ShareRoutes
from barnabas.wire.share_session import ShareSession
from barnabas.wire.share_topics import ShareTopics
from barnabas.wire.share_values import Ack, AckKind, FetchLimits, Outcome, ShareRecord, Verdict
from barnabas.wire.share_waiting import Waker
from barnabas.wire.wire_failures import LinkError, RefusedError

IDLE_S = 1.0
"""How long the thread sleeps at most."""
LINGER_S = 0.005
"""How long an acknowledgement waits for others, when no fetch is due."""
RECORDS_MAX = 1000
"""How many records one request brings at most, unless the limits ask for more."""
CLOSE_S = 5.0
"""How long `close` waits for the last acknowledgements."""

log = get("barnabas.wire")


class ShareConsumer:
    """Records of share groups over the wire; it joins on the first call of `take`."""

    def __init__(
        self,
        properties: Mapping[str, object],
        group: str,
        topics: Sequence[str],
        *,
        limits: FetchLimits,
        client_id: str = "barnabas",
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        self._limits, self._client_id = limits, client_id
        self._answer_timeout_s = answer_timeout_s
        self._security = link_security(properties)
        self._waker = Waker()
        self._membership = ShareMembership(group, list(topics))
        self._heartbeats = ShareHeartbeats(
            properties, client_id, self._membership, self._waker.wake
        )
        self._topics = ShareTopics(properties, client_id, topics)
        self._routes = ShareRoutes(
            self._topics,
            lambda node: ShareLeader(
                node, self._connect, lambda: ShareSession(group, self._membership.member_id)
            ),
        )
        self._thread: threading.Thread | None = None
        self._state = threading.Condition()
        # What the condition guards:
        self._buffer: deque[ShareRecord] = deque()
        self._arriving: list[tuple[ShareSession, Ack]] = []
        self._ack_since_s: float | None = None
        self._outstanding = 0
        self._waiting = 0  # how many records the program waits for
        self._flushing = 0
        self._failure: LinkError | None = None
        self._is_closing = False

    @property
    def member_id(self) -> str:
        """The id under which the group knows this member."""
        return self._membership.member_id

    @property
    def is_assigned(self) -> bool:
        """Whether the group has given this member partitions."""
        return bool(self._membership.assigned)

    def start(self) -> None:
        """Begin to join the group; return at once."""
        with self._state:
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(
                    target=self._run, name="barnabas-share", daemon=True
                )
                self._thread.start()
                self._heartbeats.start()

    def take(self, count_max: int, timeout_s: float | None) -> list[ShareRecord]:
        """Wait for records; return what there is, and none after the timeout or `close`."""
        self.start()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._state:
            self._waiting += count_max
            try:
                while True:
                    self._drop_expired()
                    if self._buffer or self._failure or self._is_closing:
                        return self._taken(count_max)
                    left_s = None if deadline_s is None else deadline_s - time.monotonic()
                    if left_s is not None and left_s <= 0:
                        return []
                    self._waker.wake()
                    self._state.wait(left_s)
            finally:
                self._waiting -= count_max

    def acknowledge(
        self,
        record: ShareRecord,
        kind: AckKind,
        on_verdict: Callable[[Verdict], None] | None = None,
    ) -> None:
        """Send an acknowledgement soon; `on_verdict` gets the outcome, on the consumer's thread."""

        def settled(verdict: Verdict) -> None:
            if on_verdict is not None:
                on_verdict(verdict)
            with self._state:
                self._outstanding -= 1
                self._state.notify_all()

        ack = Ack(record.place, record.offset, kind, settled)
        with self._state:
            self._outstanding += 1
            is_first = not self._arriving
            self._arriving.append((record.session, ack))
            if self._ack_since_s is None:
                self._ack_since_s = time.monotonic()
        if is_first:
            self._waker.wake()

    def renew(
        self, record: ShareRecord, on_verdict: Callable[[Verdict], None] | None = None
    ) -> None:
        """Ask for the whole time of the lock again."""

        def renewed(verdict: Verdict) -> None:
            record.is_renewing = False
            if verdict.outcome is Outcome.STORED:
                record.deadline_s = time.monotonic() + record.lock_s
            if on_verdict is not None:
                on_verdict(verdict)

        record.is_renewing = True
        self.acknowledge(record, AckKind.RENEW, renewed)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Send all acknowledgements now; return whether each has its outcome."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._state:
            self._flushing += 1
        try:
            while True:
                if self._thread is None or not self._thread.is_alive():
                    self._take_acks()
                with self._state:
                    left_s = IDLE_S if deadline_s is None else deadline_s - time.monotonic()
                    self._waker.wake()
                    if self._state.wait_for(lambda: not self._outstanding, min(IDLE_S, left_s)):
                        return True
                if left_s <= 0:
                    return False
        finally:
            with self._state:
                self._flushing -= 1

    def close(self) -> None:
        """Send what is left, give back all records that are held, and leave the group."""
        with self._state:
            if self._is_closing:
                return
            self._is_closing = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None:
            self._waker.wake()
            thread.join()
            self._heartbeats.stop()
        self._take_acks()
        self._waker.close()

    def _taken(self, count_max: int) -> list[ShareRecord]:
        if self._is_closing:
            return []
        if self._failure is not None and not self._buffer:
            raise self._failure
        return [self._buffer.popleft() for _ in range(min(count_max, len(self._buffer)))]

    def _drop_expired(self) -> None:
        """Forget buffered records that the broker has given to others by now."""
        now_s = time.monotonic()
        while self._buffer and (
            self._buffer[0].deadline_s <= now_s or self._buffer[0].session.is_ended
        ):
            self._buffer.popleft()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._turn()
        except LinkError as error:
            self._fail(error)
        except Exception as error:
            log.exception("a share consumer failed")
            self._fail(LinkError(f"The share consumer failed: {error!r}; report this error"))
        finally:
            self._end()

    def _turn(self) -> None:
        """Send what is due, then wait for an answer or for the program."""
        if self._heartbeats.failure is not None:
            raise self._heartbeats.failure
        renew_s = self._renew_buffered(time.monotonic())
        self._take_acks()
        self._routes.follow(self._membership.assigned)
        now_s = time.monotonic()
        for leader in self._routes:
            leader.check_patience(self._answer_timeout_s)
            if not leader.is_waiting and now_s >= leader.not_before_s:
                self._send_to(leader, now_s)
        waiting = [leader for leader in self._routes if leader.is_waiting]
        for leader in self._waker.wait(waiting, self._due_s(now_s, renew_s) - time.monotonic()):
            self._received(leader.receive(self._topics.names))

    def _take_acks(self) -> None:
        with self._state:
            arrived, self._arriving = self._arriving, []
        for session, ack in arrived:
            session.add(ack)

    def _renew_buffered(self, now_s: float) -> float | None:
        """Keep records that wait for the program: each expiry would cost them a delivery.

        Return when to look again.
        """
        with self._state:
            waiting = [record for record in self._buffer if not record.is_renewing]
        due_s = {record: record.deadline_s - record.lock_s / 2 for record in waiting}
        for record in waiting:
            if due_s[record] <= now_s:
                self.renew(record)
        return min((each for each in due_s.values() if each > now_s), default=None)

    def _connect(self, node: Node) -> Pipeline:
        return Pipeline(
            node.host,
            node.port,
            self._client_id,
            answer_timeout_s=self._answer_timeout_s,
            security=self._security,
        )

    def _send_to(self, leader: ShareLeader, now_s: float) -> None:
        session = leader.session
        wants_records = self._is_hungry() and bool(session.wanted)
        alone = session.needs_acknowledge or (not wants_records and self._is_ack_due(now_s))
        if session.is_open and session.has_acks and alone:
            self._note_acks_sent()
            leader.acknowledge()
        elif wants_records:
            self._note_acks_sent()
            leader.fetch(self._limits_now())

    def _limits_now(self) -> FetchLimits:
        """Ask for what the program waits for, or for more if it wants some ahead."""
        with self._state:
            waiting = min(self._waiting, RECORDS_MAX)
        return self._limits._replace(records=max(self._limits.records, waiting))

    def _is_hungry(self) -> bool:
        with self._state:
            return self._waiting > 0 and not self._buffer

    def _is_ack_due(self, now_s: float) -> bool:
        with self._state:
            since_s = self._ack_since_s
            return self._flushing > 0 or since_s is None or now_s >= since_s + LINGER_S

    def _note_acks_sent(self) -> None:
        with self._state:
            self._ack_since_s = time.monotonic() if self._arriving else None

    def _due_s(self, now_s: float, renew_s: float | None) -> float:
        """Return when there may be something to do without an answer."""
        due = [now_s + IDLE_S] if renew_s is None else [now_s + IDLE_S, renew_s]
        if self._routes.due_s is not None:
            due.append(self._routes.due_s)
        due += [
            max(leader.not_before_s, now_s + LINGER_S)
            for leader in self._routes
            if not leader.is_waiting and (leader.session.has_acks or leader.not_before_s > now_s)
        ]
        return min(due)

    def _received(self, records: list[ShareRecord]) -> None:
        if records:
            with self._state:
                self._buffer.extend(records)
                self._state.notify_all()

    def _fail(self, error: LinkError) -> None:
        with self._state:
            self._failure = error
            self._state.notify_all()

    def _end(self) -> None:
        """End all sessions; what is held goes back to the group."""
        self._take_acks()
        deadline_s = time.monotonic() + CLOSE_S
        for leader in self._routes:
            self._finish(leader, deadline_s)
            while leader.session.is_open and time.monotonic() < deadline_s:
                is_last = not leader.session.has_acks
                leader.acknowledge(is_final=is_last)
                self._finish(leader, deadline_s)
                if is_last:
                    break
                if leader.session.must_pause:
                    time.sleep(RETRY_S)
            leader.hang_up()
        self._topics.close()
        self._take_acks()

    def _finish(self, leader: ShareLeader, deadline_s: float) -> None:
        """Take the answer that a leader owes; what it brings goes back at the end."""
        while leader.is_waiting and (left_s := deadline_s - time.monotonic()) > 0:
            if self._waker.wait([leader], left_s):
                with contextlib.suppress(RefusedError):
                    leader.receive(self._topics.names)
