"""A consumer group coordinator whose log is a list, and members that send it requests.

    talk = ConsumerTalk({"orders": 4})
    first = talk.member("first")
    first.join(["orders"])
    assert first.told == talk.slots("orders")

Time passes only in `pass_time`. Records are kept as bytes, and `restart` creates a new coordinator
from nothing else.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import TypeVar

from barnabas.groups.consumer.assignors.spec import Slot
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import by_topic
from barnabas.groups.group_machine import GroupMachine
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import PartitionsAdded, TopicCreated, TopicDeleted
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored, decode_group_record
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

T = TypeVar("T")

START_MS = 1_700_000_000_000
GROUP = "group"
REBALANCE_TIMEOUT_MS = 60_000


class ConsumerTalk:
    """A coordinator, its log and its clock."""

    def __init__(
        self, topics: Mapping[str, int] | None = None, settings: GroupSettings | None = None
    ) -> None:
        self.settings = settings or GroupSettings()
        self.image = Image()
        self.now_ms = 0
        self.log: list[CoordinatorRecord] = []
        self.refusal: ApiError | None = None
        """The error of every write, if set."""
        self._topics_made = 0
        self._due: dict[str, tuple[int, Callable[[], Outcome[None]]]] = {}
        self.machine = self._load()
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions)

    @property
    def wall_ms(self) -> int:
        """The wall clock."""
        return START_MS + self.now_ms

    @property
    def group(self) -> ConsumerGroup:
        """The group that members join by default."""
        group = self.machine.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, member_id: str, instance_id: str | None = None) -> "TalkingMember":
        """Return a member that has not joined yet."""
        return TalkingMember(self, member_id, instance_id)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        """Return the response to a heartbeat; raise its `ApiError` if it fails."""
        caller = Caller("client", "/host", version, self.wall_ms)
        return self.run(lambda: self.machine.consumer.heartbeat(request, caller))

    def refused(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ErrorCode:
        """Return the error of a heartbeat that must fail."""
        before = len(self.log)
        try:
            response = self.heartbeat(request, version)
        except ApiError as error:
            assert len(self.log) == before
            return error.code
        raise AssertionError(f"the heartbeat succeeded: {response}")

    def run(self, operation: Callable[[], Outcome[T]]) -> T:
        """Run an operation; its records are replicated at once."""
        outcome = operation()
        if outcome.records and self.refusal is not None:
            if outcome.refused is not None:
                outcome.refused(self.refusal)
            raise self.refusal
        self.log += outcome.records
        for record in outcome.records:
            self.machine.replay(record, None)
        assert not isinstance(outcome.response, Pending)
        return outcome.response

    def written(self, since: int) -> list[Stored]:
        """Return the records from a position of the log on."""
        found = (decode_group_record(record) for record in self.log[since:])
        return [stored for stored in found if stored is not None]

    def restart(self) -> None:
        """Forget everything except the log."""
        self._due.clear()
        self.machine = self._load()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass; each timer fires at its own time."""
        end_ms = self.now_ms + duration_ms
        while due := [(when, name) for name, (when, _) in self._due.items() if when <= end_ms]:
            self.now_ms, name = min(due)
            _, operation = self._due.pop(name)
            try:
                self.run(operation)
            except ApiError:
                assert self.refusal is not None
        self.now_ms = end_ms

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Schedule an operation."""
        self._due[name] = (self.now_ms + max(1, delay_ms), operation)

    def cancel(self, name: str) -> None:
        """Cancel an operation."""
        self._due.pop(name, None)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        self._topics_made += 1
        topic_id = self._topics_made.to_bytes(16, "big").hex()
        self.image.replay(
            TopicCreated(name=name, topic_id=topic_id, replicas=[[1]] * partitions, config={})
        )
        self.machine.topics_changed([])

    def grow_topic(self, name: str, by: int = 1) -> None:
        """Add partitions to a topic."""
        topic_id = self.image.topics[name].topic_id.hex()
        self.image.replay(PartitionsAdded(topic_id=topic_id, replicas=[[1]] * by))
        self.machine.topics_changed([])

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.image.replay(TopicDeleted(topic_id=self.image.topics[name].topic_id.hex()))
        self.run(lambda: self.machine.topics_changed([name]))

    def slots(self, *names: str) -> set[Slot]:
        """Return every partition of some topics."""
        topics = [self.image.topics[name] for name in names]
        return {(topic.topic_id, n) for topic in topics for n in range(len(topic.partitions))}

    def settle(self, members: Collection["TalkingMember"], rounds: int = 20) -> None:
        """Let members send heartbeats and follow the responses until nothing changes any more."""
        for _ in range(rounds):
            for member in members:
                member.follow_assignment()
                member.heartbeat()
            if self.group.state == "Stable" and all(m.owned == m.assigned for m in members):
                return
        raise AssertionError(f"the group is still {self.group.state}")

    def _load(self) -> GroupMachine:
        machine = GroupMachine(self.settings, self, lambda: self.image, Random(1))
        for record in self.log:
            machine.replay(record, None)
        machine.loaded()
        return machine


class TalkingMember:
    """The client: it follows its assignment only when `follow_assignment` is called."""

    def __init__(self, talk: ConsumerTalk, member_id: str, instance_id: str | None = None) -> None:
        self._talk = talk
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: set[Slot] = set()
        """The partitions that it reads."""
        self.assigned: set[Slot] = set()
        """Its last assignment."""
        self.subscription: dict[str, object] = {}
        self._reported: set[Slot] | None = None

    def join(
        self,
        names: Iterable[str] | None = None,
        *,
        regex: str | None = None,
        version: int = 1,
        assignor: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """Join, or rejoin, without partitions."""
        self.epoch, self.owned, self.assigned, self._reported = 0, set(), set(), set()
        if names is not None or regex is not None:
            topics = None if names is None else list(names)
            self.subscription = {"subscribed_topic_names": topics, "subscribed_topic_regex": regex}
        return self.take_response(
            self._talk.heartbeat(self.request(full=True, assignor=assignor), version)
        )

    def heartbeat(self, *, full: bool = False) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, and keep the response."""
        return self.take_response(self._talk.heartbeat(self.request(full=full)))

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        """Give up partitions, and report that."""
        self.owned, self.assigned = set(), set()
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            instance_id=self.instance_id,
            member_epoch=epoch,
        )
        return self._talk.heartbeat(request)

    def request(
        self, *, full: bool = False, assignor: str | None = None
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the fields of the next heartbeat: all after an error, otherwise only changes."""
        full = full or self._reported is None
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            server_assignor=assignor,
        )
        if full or self.owned != self._reported:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic(frozenset(self.owned)).items()
            ]
        if full:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            for name, value in self.subscription.items():
                setattr(request, name, value)
        return request

    def take_response(
        self, response: ConsumerGroupHeartbeatResponse
    ) -> ConsumerGroupHeartbeatResponse:
        """Keep a response."""
        assert response.member_id is not None
        self.member_id, self.epoch = response.member_id, response.member_epoch
        self._reported = set(self.owned)
        if response.assignment is not None:
            self.assigned = slots_of(response.assignment)
        return response

    def lose_response(self) -> None:
        """Lose a response: the next heartbeat has all fields."""
        self._reported = None

    def follow_assignment(self) -> None:
        """Give up revoked partitions, then read the assigned ones."""
        self.owned = set(self.assigned)

    def drop_all(self) -> None:
        """Give up all partitions: the member was fenced."""
        self.owned, self.assigned = set(), set()


def slots_of(assignment: Assignment) -> set[Slot]:
    """Return the partitions of an assignment."""
    return {
        (TopicId(topic.topic_id), number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    }


def two_members(
    partitions: int = 4, names: tuple[str, str] = ("first", "second")
) -> tuple[ConsumerTalk, TalkingMember, TalkingMember]:
    """Return a talk about one topic: the first member owns it, the second just joined."""
    talk = ConsumerTalk({"t": partitions})
    first, second = (talk.member(name) for name in names)
    first.join(["t"])
    first.follow_assignment()
    first.heartbeat()
    second.join(["t"])
    return talk, first, second
