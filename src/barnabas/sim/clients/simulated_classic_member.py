"""A simulated member of a classic group: joins, syncs its assignment, and sends heartbeats.

A member that has to join again gives everything up, before it joins or, as cooperative consumers
do, once it knows its next share: until then it may commit how far it read. The leader
shares out at random, so that two answers to the same question would show.

A generation counts from when somebody has a share in it: it is stored with the shares, as in
Kafka, and a broker that dies before may give its number to another.
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
"""How often a member commits after it has joined again, before it knows its next share."""
LOST_MEMBERSHIP = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}


class ClassicMember(Member):
    """Shares the partitions of one topic with others."""

    partitions: list[TopicPartition]
    generation = -1
    commits = True
    """Whether it commits offsets by itself."""
    restless = 0.0
    """How often it leaves after a heartbeat, only to come back."""

    @property
    def settled(self) -> bool:
        """Whether it has a generation that is the latest anybody heard of."""
        return self.generation >= 0 and self.generation == self.growth.number_floor(self._what)

    def life(self) -> Talk:
        """Join, work, join again."""
        yield from self.find(self.group, GROUP)
        while not self.closing:
            joined = yield from self._join()
            if joined is not None:
                yield from self._work()
        yield from self._leave()

    def died(self) -> None:
        """Forget the member id; a static member is found by its instance id."""
        self.member_id, self.generation = "", -1
        self.owned = set()

    @property
    def _what(self) -> str:
        return f"the generation of {self.group}"

    @property
    def _identity(self) -> str:
        return self.instance_id or self.member_id

    def _join(self) -> Asking:
        """Join and get a share; None where it did not come to that."""
        held, held_in = self.owned, self.generation
        self.generation, self.owned = -1, set()
        floor = self.growth.number_floor(self._what)
        answer = yield from self.ask(self._join_request(), None, JOIN_TIMEOUT_MS)
        if answer is None:
            return None
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        if not self._accepted(code):
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
            assignments=self._share_out([m.member_id for m in joined.members]) if leads else [],
        )
        answer = yield from self.ask(request)
        if answer is None:
            return None
        if not self._accepted(ErrorCode(answer.error_code)):
            return None
        self.owned = {
            TopicPartition(self.partitions[0].topic, number) for number in answer.assignment
        }
        self.generation = joined.generation_id
        self.growth.observe_number(self._what, floor, self.generation)
        self.ownership.assigned(self.group, self.generation, self._identity, self.owned)
        self.world.note(self.name, f"owns {sorted(answer.assignment)} in {self.generation}")
        return True

    def _share_out(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        shares: dict[str, list[int]] = {member: [] for member in members}
        for partition in self.partitions:
            shares[self.rng.choice(members)].append(partition.partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=bytes(numbers))
            for member, numbers in shares.items()
        ]

    def _work(self) -> Asking:
        """Report and commit until the group has to share out again."""
        while not self.closing:
            yield Sleep(self.rng.randint(100, 1_500))
            if self.commits and self.owned and self.rng.random() < 0.5:
                yield from self._commit(self.owned, self.generation)
            code = yield from self._heartbeat()
            if code is not None and code is not ErrorCode.NONE and not self.passes(code):
                self._accepted(code)
                return
            if self.restless and self.rng.random() < self.restless:
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
        newest = self.growth.number_floor(self._what)
        partition = self.rng.choice(sorted(owned))
        membership = (self.member_id, generation)
        code = yield from self.commit(
            partition, self.rng.randint(0, 1_000), membership, self.instance_id
        )
        if code is ErrorCode.NONE and newest > membership[1]:
            raise InvariantError(
                f"{self.name} commits in generation {membership[1]} although there is {newest}"
            )

    def _accepted(self, code: ErrorCode) -> bool:
        """Learn from an error; return whether there was none."""
        if code in LOST_MEMBERSHIP:
            self.member_id = ""
        elif not self.passes(code) and code not in (
            ErrorCode.NONE,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
        ):
            raise InvariantError(f"{self.name} is refused with {code.name}")
        return code is ErrorCode.NONE

    def _leave(self) -> Asking:
        leaver = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.owned = set()
        while self.member_id:
            answer = yield from self.ask(LeaveGroupRequest(group_id=self.group, members=[leaver]))
            if answer is not None and not self.passes(ErrorCode(answer.error_code)):
                return
            yield from self.pause_before_retry()
