"""Simulated members of share groups: each keeps a session with every leader of its partitions.

A member fetches from one leader after the other. It acknowledges with its fetches or alone, for a
batch or for each offset, in every way that the protocol has; it also forgets records, asks for more
time, names records that it does not hold, forgets partitions, closes sessions and begins new ones.
A careful member only accepts what it gets.

Brokers serve members that no group coordinator knows. The place for heartbeats is `life`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.node.share.share_sessions import Place
from barnabas.protocol.message import Message
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.protocol.records import batches, records, verify
from barnabas.share.window import AcknowledgeType
from barnabas.sim.checks.ledger import Ledger
from barnabas.sim.checks.share_checks import Ack, Answered, Attempt, Delivery, Order, Spot
from barnabas.sim.clients.actor import Actor, Answer, Asked, Asking, BrokerConnection, Sleep, Talk
from barnabas.sim.clients.share_acks import Said, batches_for, choose
from barnabas.sim.clients.share_requests import (
    AckBatch,
    Wanted,
    metadata_of,
    share_acknowledge_of,
    share_fetch_of,
)
from barnabas.sim.host import Host
from barnabas.sim.network import Link
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import ShareGroup, ShareGroups
from barnabas.sim.world import InvariantError, World

Epochs = dict[Place, int | None]
"""The epochs in which a broker leads partitions."""

FINAL_EPOCH = -1
FETCH_BYTES = 4_000
WAITS_MS = (0, 50, 400)
RETRY_MS = 100
SESSION_ERRORS = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
PASSING = (
    ErrorCode.NONE,
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSUPPORTED_VERSION,
    *MOVED,
)


@dataclass(eq=False)
class Session:
    """A share session with one broker."""

    epoch: int = 0
    link: Link | None = None
    """The connection on which it began, with which it ends."""
    places: set[Place] = field(default_factory=set)


class ShareConsumer(Actor):
    """A member of a share group."""

    watches_broker = True

    def __init__(
        self, world: World, cluster: Cluster, name: str, shares: ShareGroups, group: ShareGroup
    ) -> None:
        super().__init__(world, cluster, name)
        self.shares = shares
        self.group = group
        self.ledgers: tuple[Ledger, ...] = ()
        """Where the records that it may get were written down."""
        self.is_careful = False
        """Whether it only accepts records, as soon as it gets them."""
        self.member = ""
        self.gap_ms = self.rng.choice((5, 60, 300))
        self._sessions: dict[Host, Session] = {}
        self._leaders: dict[Place, Host] = {}
        self._held: dict[Place, dict[int, Delivery]] = {}
        self._attempts: list[tuple[Message, list[Attempt], Epochs]] = []
        """What each request says that was not answered."""

    def died(self) -> None:
        """Forget sessions and records."""
        self._sessions.clear()
        self._leaders.clear()
        self._held.clear()

    def life(self) -> Talk:
        """Fetch and acknowledge until the run ends, then close all sessions."""
        self.died()
        self.member = f"{self.name}/{self.lives}"
        while not self.closing:
            if not self.group.is_ready:
                yield Sleep(RETRY_MS)
                continue
            missing = [place for place in self.group.places if place not in self._leaders]
            if missing:
                yield from self._look_up()
            for host in self._present_leaders():
                yield from self._visit(host)
            yield Sleep(self.rng.randint(1, 5 if self.is_careful else self.gap_ms))
        for host in list(self._sessions):
            yield from self._close(host)

    def answered_by_broker(self, line: BrokerConnection, asked: Asked, answer: Answer) -> None:
        """Check deliveries and the answers to acknowledgements."""
        request = asked.request
        attempts, epochs = self._said_in(request)
        for attempt in attempts:
            self._check_acks(line, attempt, answer)
        if isinstance(request, ShareFetchRequest) and answer.error_code == 0:
            for topic in answer.responses:
                for part in topic.partitions:
                    place = Place(TopicId(bytes(topic.topic_id)), part.partition_index)
                    self._check_deliveries(line, asked, place, part, epochs.get(place))

    def _said_in(self, request: Message) -> tuple[list[Attempt], Epochs]:
        for number, (one, attempts, epochs) in enumerate(self._attempts):
            if one is request:
                del self._attempts[number]
                return attempts, epochs
        return [], {}

    def _present_leaders(self) -> list[Host]:
        return list(dict.fromkeys([*self._leaders.values(), *self._sessions]))

    def _look_up(self) -> Asking:
        host = self.rng.choice(self.cluster.hosts)
        answer = yield from self._ask_at(host, metadata_of([self.group.topic]))
        for topic in [] if answer is None else answer.topics:
            self.cluster.on_metadata(host, topic)
            for part in topic.partitions:
                place = Place(TopicId(bytes(topic.topic_id)), part.partition_index)
                leader = self.cluster.by_id.get(part.leader_id)
                if place in self.group.places and leader is not None:
                    self._leaders[place] = leader
        if len(self._leaders) < len(self.group.places):
            yield Sleep(RETRY_MS)

    def _visit(self, host: Host) -> Asking:
        """Send one request to a leader; sometimes something unusual."""
        rng, session = self.rng, self._sessions.get(host)
        if session is not None and session.link is not self._link_to(host):
            self._forget(host)
            session = None
        if session is None:
            yield from self._fetch(host, Session(), {})
            return
        if not self.is_careful:
            draw = rng.random()
            if draw < 0.02:
                yield from self._close(host)
                return
            if draw < 0.04:
                yield from self._fetch(host, Session(), {})
                return
            if draw < 0.06:
                yield Sleep(self.group.rules.lock_duration_ms + rng.randint(-50, 50))
        said = self._say(host)
        renews = any(AcknowledgeType.RENEW in each.kinds for each in said.values())
        if renews or (said and rng.random() < 0.4):
            yield from self._acknowledge(host, session, said, is_renewal=renews)
        else:
            yield from self._fetch(host, session, said)

    def _link_to(self, host: Host) -> Link | None:
        line = self._connections.get(host)
        return line.link if line is not None and line.link.is_open else None

    def _forget(self, host: Host) -> None:
        """Forget a session whose connection is lost, and the records that came with it."""
        del self._sessions[host]
        for place, leader in self._leaders.items():
            if leader is host:
                self._held.pop(place, None)

    def _say(self, host: Host) -> dict[Place, Said]:
        """Choose what to say of the records that a leader gave."""
        said: dict[Place, Said] = {}
        for place, held in self._held.items():
            if self._leaders.get(place) is not host or not held:
                continue
            chosen = choose(self.rng, held, self.group.rules, is_careful=self.is_careful)
            if chosen is not None:
                said[place] = chosen
        return said

    def _fetch(self, host: Host, session: Session, said: dict[Place, Said]) -> Asking:
        rng, is_new = self.rng, session.epoch == 0
        mine = {place for place, leader in self._leaders.items() if leader is host}
        if not self.is_careful and len(mine) > 1 and rng.random() < 0.05:
            mine.discard(rng.choice(sorted(mine)))
        forgotten = sorted(session.places - mine)
        acks: dict[Place, list[AckBatch]] = {place: [] for place in sorted(mine - session.places)}
        acks |= batches_for(rng, said)
        session.places = (mine | set(said)) - set(forgotten)
        wanted = Wanted(
            0 if self.is_careful else rng.choice(WAITS_MS),
            FETCH_BYTES,
            500 if self.is_careful else rng.choice((1, 3, 20, 500)),
            is_exact=rng.random() < 0.5,
        )
        request = share_fetch_of(self._owner, session.epoch, acks, wanted, forgotten)
        if is_new:
            self._sessions[host] = session
        answer = yield from self._send(host, request, said)
        if is_new:
            session.link = self._link_to(host)
        if self._is_over(host, session, answer):
            return
        for topic in answer.responses:
            for part in topic.partitions:
                place = Place(TopicId(bytes(topic.topic_id)), part.partition_index)
                self._take(host, place, part)

    def _acknowledge(
        self, host: Host, session: Session, said: dict[Place, Said], *, is_renewal: bool
    ) -> Asking:
        acks = batches_for(self.rng, said)
        if is_renewal and self.rng.random() < 0.5:
            wanted = Wanted(is_renewal=True)
            request: Message = share_fetch_of(self._owner, session.epoch, acks, wanted)
            session.places |= set(said)
        else:
            request = share_acknowledge_of(self._owner, session.epoch, acks, is_renewal=is_renewal)
        answer = yield from self._send(host, request, said)
        if self._is_over(host, session, answer):
            return
        for topic in answer.responses:
            for part in topic.partitions:
                place = Place(TopicId(bytes(topic.topic_id)), part.partition_index)
                self._handle_error(host, place, ErrorCode(part.error_code))

    def _close(self, host: Host) -> Asking:
        """Close a session, and maybe acknowledge what is left."""
        del self._sessions[host]
        said = self._say(host) if self.rng.random() < 0.7 else {}
        said = {
            place: each for place, each in said.items() if AcknowledgeType.RENEW not in each.kinds
        }
        acks = batches_for(self.rng, said)
        if self.rng.random() < 0.5:
            request: Message = share_acknowledge_of(self._owner, FINAL_EPOCH, acks)
        else:
            request = share_fetch_of(self._owner, FINAL_EPOCH, acks, Wanted())
        for place, leader in self._leaders.items():
            if leader is host:
                self._held.pop(place, None)
        yield from self._send(host, request, said, ends=True)

    @property
    def _owner(self) -> tuple[str, str]:
        return self.group.group_id, self.member

    def _send(
        self, host: Host, request: Message, said: dict[Place, Said], *, ends: bool = False
    ) -> Asking:
        """Send a request; the member no longer holds the records that it acknowledges."""
        now_ms, attempts = self.world.now_ms, []
        for place, each in said.items():
            acks = [
                Ack(offset, kind, each.deliveries.get(offset))
                for offset, kind in zip(each.offsets, each.kinds, strict=True)
            ]
            attempt = self.shares.checks.attempt(
                self.group.group_id, place, acks, self.member, now_ms
            )
            if AcknowledgeType.RENEW in each.kinds and not self.group.rules.can_renew:
                attempt.is_certain = False
            if ends:
                attempt.is_final = True
            attempts.append(attempt)
            held = self._held.get(place, {})
            for offset, kind in zip(each.offsets, each.kinds, strict=True):
                if kind is not AcknowledgeType.RENEW:
                    held.pop(offset, None)
        epochs = {place: self.shares.leader_epoch(host, place) for place in self.group.places}
        self._attempts.append((request, attempts, epochs))
        line = self._connections.get(host)
        if ends and line is not None:
            self.shares.checks.give_back(line.link, now_ms)
        return (yield from self._ask_at(host, request))

    def _is_over(self, host: Host, session: Session, answer: Answer) -> bool:
        """Return whether the session is over; otherwise it is at its next epoch."""
        if answer is not None and answer.error_code == 0:
            session.epoch += 1
            return False
        code = None if answer is None else ErrorCode(answer.error_code)
        if code is not None and code not in SESSION_ERRORS and code not in PASSING:
            raise InvariantError(f"{self.name} got {code.name}")
        if self._sessions.get(host) is session:
            del self._sessions[host]
        for place, leader in list(self._leaders.items()):
            if leader is host:
                if code is None or self.rng.random() < 0.5:
                    self._held.pop(place, None)
                del self._leaders[place]
        return True

    def _take(self, host: Host, place: Place, part: Answer) -> None:
        """Take the records of a partition."""
        self._handle_error(host, place, ErrorCode(part.acknowledge_error_code))
        self._handle_error(host, place, ErrorCode(part.error_code))
        held = self._held.setdefault(place, {})
        for run in part.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                spot = Spot(self.group.group_id, place, offset)
                found = self.shares.checks.newest_of(spot, self.member)
                if found is not None and found.order.deliveries == run.delivery_count:
                    held[offset] = found

    def _handle_error(self, host: Host, place: Place, code: ErrorCode) -> None:
        if code not in PASSING:
            raise InvariantError(f"{self.name} got {code.name} for {place}")
        if code in MOVED and self._leaders.get(place) is host:
            del self._leaders[place]
            self._held.pop(place, None)

    def _check_acks(self, line: BrokerConnection, attempt: Attempt, answer: Answer) -> None:
        codes: dict[Place, int] = {}
        for topic in answer.responses if answer.error_code == 0 else ():
            for part in topic.partitions:
                place = Place(TopicId(bytes(topic.topic_id)), part.partition_index)
                codes[place] = getattr(part, "acknowledge_error_code", part.error_code)
        if answer.error_code == 0 and attempt.place not in codes:
            raise InvariantError(f"{self.name} got no answer for {attempt.place}")
        code = ErrorCode(codes.get(attempt.place, answer.error_code))
        at = Answered(
            self.world.now_ms,
            self.shares.leader_epoch(line.host, attempt.place),
            line.host.life,
            self.shares.start(line.host, attempt.group_id, attempt.place),
        )
        lock_ms = self.group.rules.lock_duration_ms
        self.shares.checks.acknowledged(attempt, code, self.member, at, lock_ms)

    def _check_deliveries(
        self,
        line: BrokerConnection,
        asked: Asked,
        place: Place,
        part: Answer,
        epoch_before: int | None,
    ) -> None:
        epoch = self.shares.leader_epoch(line.host, place)
        partition = self.group.places[place]
        values = self._values(part.records or b"")
        rules, now_ms = self.group.rules, self.world.now_ms
        for run in part.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                spot = Spot(self.group.group_id, place, offset)
                if offset not in values:
                    raise InvariantError(f"{self.name} got {spot} without a record")
                self._check_value(partition, values[offset])
                self.shares.checks.show(partition, place, offset, values[offset])
                if epoch is None or epoch != epoch_before:
                    continue  # it is not known in which epoch it was acquired
                delivery = Delivery(
                    spot,
                    Order(epoch, line.host.life, run.delivery_count),
                    self.member,
                    line.link,
                    now_ms,
                    asked.sent_ms + rules.lock_duration_ms,
                )
                self.shares.checks.deliver(
                    delivery, sent_ms=asked.sent_ms, deliveries_max=rules.deliveries_max
                )

    def _values(self, content: bytes) -> dict[int, str]:
        """Return the records of a response."""
        found: dict[int, str] = {}
        for header, batch in batches(content):
            verify(batch, header)
            for record in () if header.is_control else records(batch, header):
                found[record.offset] = (record.value or b"").decode()
        return found

    def _check_value(self, partition: TopicPartition, value: str) -> None:
        known: Iterable[Ledger] = self.ledgers
        sent = next((ledger.records[value] for ledger in known if value in ledger.records), None)
        if sent is None or sent.partition != partition:
            raise InvariantError(f"{self.name} got {value}, which no client wrote to {partition}")
        txn = sent.txn if self.group.rules.reads_committed else None
        if txn is not None and not txn.may_commit:
            raise InvariantError(f"{self.name} got {value} of {txn.name}, which was not committed")
