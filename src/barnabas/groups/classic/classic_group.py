"""The state of a classic group: its members elect a leader, which assigns the work.

The coordinator does not interpret assignments. It collects the members, begins a new generation,
names a leader and one protocol that all members know, sends the list of members to the leader, and
sends the leader's assignments to the members. Consumers assign partitions in this way; Kafka
Connect and schema registries assign other work.

    Empty                no members; the last generation and offsets may be stored
    PreparingRebalance   all members must join (again); those that have joined wait for the rest
    CompletingRebalance  all have joined; the coordinator waits for the leader's assignment
    Stable               every member has an assignment
    Dead                 the group is deleted

    state                event                                             next state
    -------------------  ------------------------------------------------  -------------------
    Empty                a member joins                                    PreparingRebalance
    PreparingRebalance   all have joined, or the rebalance timeout is over CompletingRebalance
    PreparingRebalance   the same, and no member is left                   Empty
    CompletingRebalance  the leader's assignment is committed              Stable
    CompletingRebalance  the assignment could not be written; a member     PreparingRebalance
    or Stable            joined, left, expired, never asked for its
                         assignment, or joined with other metadata; in
                         Stable, the leader joined
    Empty                the group is deleted                              Dead

From Empty, the first members wait a little for more members. Going to CompletingRebalance or to
Empty begins a generation. A generation is stored once it has its assignments, or no members: a
coordinator that loads the records finds the last such generation, Stable or Empty, and members of
a later one must join again. Until then the coordinator has members, leader and generation in
memory only. Assignments are changed by replay only.

Pending answers are in `joining` for JoinGroup, `syncing` for SyncGroup, and `listening` for
Heartbeat, whose member learns of a rebalance as soon as there is one.
"""

from collections import Counter
from collections.abc import Collection
from enum import StrEnum
from typing import TypeVar

from barnabas.groups.classic import classic_answers
from barnabas.groups.classic.classic_member import Member, Protocols
from barnabas.groups.directory import GroupType
from barnabas.model.coordination import CoordinatorRecord, Scheduler
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.protocol import coordinator_codec
from barnabas.protocol.codec import decoder
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse

CONSUMERS = "consumer"
"""The protocol type of consumers, whose metadata the coordinator can read."""

VERSION_BYTES = 2

T = TypeVar("T")


class State(StrEnum):
    """The states, by the names that clients know."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """One group, without its timers, which are in `rebalances` and `classic_sessions`."""

    def __init__(self, group_id: str, clock: Scheduler) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.state_since_ms: int | None = clock.wall_ms
        """When the group became empty, in wall-clock time; None if the records do not say."""
        self.generation = 0
        self.assigned_generation = -1
        """The last generation whose assignments were sent to members."""
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """The member ids of static members, by instance id."""
        self.invited: dict[str, None] = {}
        """Member ids that clients got (KIP-394) and have not used yet."""
        self.joining: dict[str, Pending[JoinGroupResponse]] = {}
        self.syncing: dict[str, Pending[SyncGroupResponse]] = {}
        self.listening: dict[str, Pending[HeartbeatResponse]] = {}
        self.unsynced: dict[str, None] = {}
        """Members that have not asked for their assignment of this generation yet."""
        self.is_first_rebalance = False
        """Whether the present rebalance began with an empty group."""
        self.has_newcomers = False
        """Whether a member joined while the first rebalance waited for more members."""
        self.is_storing = False
        """Whether this generation's assignments are being written to the log."""
        self._clock = clock
        self._knowing: Counter[str] = Counter()
        self._topics: frozenset[str] | None = None
        self._topics_of = -1

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""
        return GroupType.CLASSIC

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return self.state is State.EMPTY

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member left."""
        return self.state_since_ms if self.is_empty else None

    @property
    def has_all_joined(self) -> bool:
        """Whether all members have joined."""
        return len(self.joining) == len(self.members) and not self.invited

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members may take to join: the largest rebalance timeout among them."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def enter(self, state: State) -> None:
        """Change the state."""
        self.state = state
        self.state_since_ms = self._clock.wall_ms

    def begin_generation(self) -> None:
        """Begin the next generation with the current members."""
        self.generation += 1
        self.is_storing = False
        self.protocol = self.favourite_protocol() if self.members else None
        self.unsynced = dict.fromkeys(self.members)
        self.enter(State.COMPLETING if self.members else State.EMPTY)

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member, perhaps the first."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.invited.pop(member.member_id, None)
        self._knowing.update(member.protocol_names)

    def remove(self, member_id: str) -> None:
        """Remove a member, or a client with a pending member id; fail its waiting request."""
        self.invited.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        self._turn_away(member_id, ErrorCode.UNKNOWN_MEMBER_ID, "")
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._forget(member.protocol_names)
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def update(
        self, member: Member, protocols: Protocols, session_timeout_ms: int, rebalance_ms: int
    ) -> None:
        """Update a member from its request."""
        self._forget(member.protocol_names)
        member.protocols = protocols
        self._knowing.update(member.protocol_names)
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_ms

    def substitute(self, old: Member, new: Member) -> None:
        """Replace a static member's earlier instance, which is fenced."""
        assert new.instance_id is not None
        self._turn_away(old.member_id, ErrorCode.FENCED_INSTANCE_ID, old.member_id)
        del self.members[old.member_id]
        self.members[new.member_id] = new
        self.instances[new.instance_id] = new.member_id
        self._forget(old.protocol_names)
        self._knowing.update(new.protocol_names)
        if self.leader == old.member_id:
            self.leader = new.member_id
        if old.member_id in self.unsynced:
            del self.unsynced[old.member_id]
            self.unsynced[new.member_id] = None

    def elect_leader(self) -> bool:
        """Choose a leader among those that joined; return whether there is one."""
        if self.leader not in self.joining:
            joined = next((name for name in self.members if name in self.joining), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    # Protocols

    def takes(self, protocol_type: str, names: set[str]) -> bool:
        """Tell whether a client with these protocols could join."""
        if not self.members:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and not self._common.isdisjoint(names)

    def favourite_protocol(self) -> str:
        """Return the protocol that most members prefer among those that all members know."""
        common = self._common
        votes = Counter(member.vote(common) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    @property
    def _common(self) -> set[str]:
        member_count = len(self.members)
        return {name for name, count in self._knowing.items() if count == member_count}

    def _forget(self, names: set[str]) -> None:
        for name in names:
            self._knowing[name] -= 1
            if not self._knowing[name]:
                del self._knowing[name]

    # Answers

    def wait_to_join(self, member_id: str) -> Pending[JoinGroupResponse]:
        """Return the answer that a member gets once the next generation begins.

        Kafka never answers an earlier request of the same member that still waits. Here it gets an
        error and the client tries again, since its connection cannot answer later requests before.
        """
        again = classic_answers.join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member_id)
        answer(self.joining, member_id, again)
        waiting: Pending[JoinGroupResponse] = Pending()
        self.joining[member_id] = waiting
        return waiting

    def wait_to_sync(self, member_id: str) -> Pending[SyncGroupResponse]:
        """Return the answer that a member gets once there are assignments."""
        answer(
            self.syncing, member_id, classic_answers.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)
        )
        waiting: Pending[SyncGroupResponse] = Pending()
        self.syncing[member_id] = waiting
        return waiting

    def wait_for_news(self, member_id: str) -> Pending[HeartbeatResponse]:
        """Return the answer that a member gets once all members must join again."""
        self.no_news(member_id)
        waiting: Pending[HeartbeatResponse] = Pending()
        self.listening[member_id] = waiting
        return waiting

    def no_news(self, member_id: str) -> None:
        """Answer a member's waiting heartbeat: nothing has changed."""
        answer(self.listening, member_id, HeartbeatResponse())

    def call_to_rejoin(self) -> None:
        """Answer waiting heartbeats: their members must join again."""
        for member_id in list(self.listening):
            self._tell(member_id, ErrorCode.REBALANCE_IN_PROGRESS)

    def joined(self, member_id: str) -> JoinGroupResponse:
        """Return a member's JoinGroup response; the leader's response lists all members."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            member_id=member_id,
            members=self._listed() if member_id == self.leader else [],
        )

    def synced(self, member_id: str) -> SyncGroupResponse:
        """Return a member's assignment, and record that the member has it."""
        member = self.members[member_id]
        member.assigned_in = self.generation
        return SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignment=member.assignment,
        )

    def _listed(self) -> list[JoinGroupResponseMember]:
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    def _turn_away(self, member_id: str, code: ErrorCode, told_id: str) -> None:
        answer(self.joining, member_id, classic_answers.join_refused(code, told_id))
        answer(self.syncing, member_id, classic_answers.sync_refused(code))
        self._tell(member_id, code)

    def _tell(self, member_id: str, code: ErrorCode) -> None:
        answer(self.listening, member_id, HeartbeatResponse(error_code=code))

    # Questions of other parts

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise the `ApiError` for a client that is not a member."""
        if instance_id is not None:
            current = self.instances.get(instance_id)
            if current is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_generation(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Raise the `ApiError` for a client that is not a member of this generation."""
        self.check_member(member_id, instance_id)
        if generation != self.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        """Raise the `ApiError` with which a commit is refused.

        A commit without a generation comes from a tool, or from a consumer that needs no group. It
        is allowed while the group is empty. Old transactional producers never name the member whose
        offsets they commit.
        """
        if epoch < 0 and self.is_empty:
            return
        if epoch >= 0 or member_id or instance_id is not None:
            if self.state is not State.STABLE and not transactional:
                self.check_member(member_id, instance_id)
                if self._keeps_assignment(member_id, epoch):
                    return
            self.check_generation(member_id, instance_id, epoch)
        elif not transactional:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is State.COMPLETING and not transactional:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _keeps_assignment(self, member_id: str, generation: int) -> bool:
        """Tell whether a member may still have the partitions of the last assigned generation.

        No partition has a new owner until the next assignments are sent. So a member that got its
        assignment may commit until then, even after it has joined again: a cooperative member keeps
        its partitions meanwhile (KIP-429), and one that closes commits in its revoke callback.
        Kafka refuses such a commit, but its members learn of the rebalance seconds later, and have
        usually committed by then.
        """
        is_between = self.state in (State.PREPARING, State.COMPLETING)
        last = self.assigned_generation
        was_assigned = self.members[member_id].assigned_in == last
        return is_between and was_assigned and 0 <= last <= generation <= self.generation

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Return False: an earlier generation may never commit."""
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Allow every client to read the offsets of a classic group."""

    def touch(self, member_id: str) -> None:
        """Extend the session of a member that sent another request; see `classic_sessions`."""
        member = self.members.get(member_id)
        if member is not None:
            member.deadline_ms = self._clock.now_ms + member.session_timeout_ms

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether members read a topic; True if their metadata does not say."""
        if self._topics_of != self.generation:
            self._topics_of, self._topics = self.generation, self._subscribed()
        if self._topics is None:
            return self.protocol_type == CONSUMERS
        return topic in self._topics

    def _subscribed(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMERS:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscription(member.metadata(self.protocol))
            )
        except WireError:
            return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the record that deletes the group."""
        return [coordinator_codec.encode(GroupMetadataKey(group=self.group_id), None)]


def answer(waiting: dict[str, Pending[T]], member_id: str, response: T) -> bool:
    """Answer the waiting request of a member; return whether there was one."""
    pending = waiting.pop(member_id, None)
    if pending is not None:
        pending.complete(response)
    return pending is not None


def subscription(metadata: bytes) -> list[str]:
    """Return the topics that a consumer names; raise `WireError` if they cannot be read.

    Every version begins as version 0 does, after two bytes for its number.
    """
    found, _ = decoder(ConsumerProtocolSubscription, 0)(metadata, VERSION_BYTES)
    return found.topics
