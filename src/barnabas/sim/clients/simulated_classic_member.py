"""A simulated member of a classic group: joins, syncs its assignment, and sends heartbeats.

A member that has to rejoin gives up its partitions before it joins. A cooperative member keeps them
until it knows its next assignment, and may commit its progress until then. The leader draws a
random assignment, so that two different answers to the same SyncGroup would show.

A generation counts once a member has an assignment in it. The generation is stored with the
assignment, as in Kafka. If a broker dies before that, another broker may use the same number again.
"""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.sim.clients.actor import Answer, Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import GROUP
from barnabas.sim.clients.simulated_member import Member
from barnabas.sim.host import SESSION_MS
from barnabas.sim.world import InvariantError

REBALANCE_MS = 8_000
JOIN_TIMEOUT_MS = REBALANCE_MS + 5_000
COOPERATIVE = 0.3
"""How often a member commits after it rejoined, before it knows its next assignment."""
LOST_MEMBERSHIP = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}


class ClassicMember(Member):
    """Shares the partitions of one topic with other members."""

    partitions: list[TopicPartition]
    generation = -1
    commits = True
    """Whether the member commits offsets by itself."""
    leave_chance = 0.0
    """How often the member leaves after a heartbeat and then rejoins."""

    @property
    def settled(self) -> bool:
        """Whether the member is in the latest generation that any member knows."""
        return self.generation >= 0 and self.generation == self.monotonic.number_floor(self._what)

    def life(self) -> Talk:
        """Join, work, and rejoin."""
        yield from self.find(self.group, GROUP)
        while not self.closing:
            joined = yield from self._join()
            if joined is not None:
                yield from self._work()
        yield from self._leave()

    def died(self) -> None:
        """Forget the member id; the coordinator finds a static member by its instance id."""
        self.member_id, self.generation = "", -1
        self.owned = set()

    @property
    def _what(self) -> str:
        return f"the generation of {self.group}"

    @property
    def _identity(self) -> str:
        return self.instance_id or self.member_id

    def _join(self) -> Asking:
        """Join and get an assignment; None if that failed."""
        held, held_in = self.owned, self.generation
        self.generation, self.owned = -1, set()
        floor = self.monotonic.number_floor(self._what)
        answer = yield from self.ask(self._join_request(), None, JOIN_TIMEOUT_MS)
        if answer is None:
            return None
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        if not self._check_code(code):
            yield from self.pause_before_retry()
            return None
        self.member_id = answer.member_id
        if held and self.commits and self.rng.random() < COOPERATIVE:
            generation = self.rng.choice((held_in, answer.generation_id))
            yield from self._commit(held, generation)
        return (yield from self._sync(answer, floor))

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="any", metadata=self.name.encode())],
        )

    def _sync(self, joined: Answer, floor: int) -> Asking:
        leads = joined.leader == self.member_id and not joined.skip_assignment
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="any",
            assignments=self._assign([m.member_id for m in joined.members]) if leads else [],
        )
        answer = yield from self.ask(request)
        if answer is None:
            return None
        if not self._check_code(ErrorCode(answer.error_code)):
            return None
        self.owned = {
            TopicPartition(self.partitions[0].topic, number) for number in answer.assignment
        }
        self.generation = joined.generation_id
        self.monotonic.observe_number(self._what, floor, self.generation)
        self.ownership.assigned(self.group, self.generation, self._identity, self.owned)
        self.world.note(self.name, f"owns {sorted(answer.assignment)} in {self.generation}")
        return True

    def _assign(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        shares: dict[str, list[int]] = {member: [] for member in members}
        for partition in self.partitions:
            shares[self.rng.choice(members)].append(partition.partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=bytes(numbers))
            for member, numbers in shares.items()
        ]

    def _work(self) -> Asking:
        """Send heartbeats and commit until the group rebalances."""
        while not self.closing:
            yield Sleep(self.rng.randint(100, 1_500))
            if self.commits and self.owned and self.rng.random() < 0.5:
                yield from self._commit(self.owned, self.generation)
            code = yield from self._heartbeat()
            if code is not None and code is not ErrorCode.NONE and not self.is_retriable(code):
                self._check_code(code)
                return
            if self.leave_chance and self.rng.random() < self.leave_chance:
                yield from self._leave()
                self.died()
                yield Sleep(self.rng.randint(0, 1_000))
                return

    def _heartbeat(self) -> Asking:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        answer = yield from self.ask(request)
        return None if answer is None else ErrorCode(answer.error_code)

    def _commit(self, owned: set[TopicPartition], generation: int) -> Asking:
        newest = self.monotonic.number_floor(self._what)
        partition = self.rng.choice(sorted(owned))
        membership = (self.member_id, generation)
        code = yield from self.commit(
            partition, self.rng.randint(0, 1_000), membership, self.instance_id
        )
        if code is ErrorCode.NONE and newest > membership[1]:
            raise InvariantError(
                f"{self.name} commits in generation {membership[1]} although there is {newest}"
            )

    def _check_code(self, code: ErrorCode) -> bool:
        """Handle an error; return whether there was none."""
        if code in LOST_MEMBERSHIP:
            self.member_id = ""
        elif not self.is_retriable(code) and code not in (
            ErrorCode.NONE,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
        ):
            raise InvariantError(f"{self.name} got {code.name}")
        return code is ErrorCode.NONE

    def _leave(self) -> Asking:
        leaver = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.owned = set()
        while self.member_id:
            answer = yield from self.ask(LeaveGroupRequest(group_id=self.group, members=[leaver]))
            if answer is not None and not self.is_retriable(ErrorCode(answer.error_code)):
                return
            yield from self.pause_before_retry()
