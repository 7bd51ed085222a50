"""A coordinator of share groups whose log is a list, and members that send it heartbeats.

    talk = ShareGroupTalk({"orders": 4})
    first = talk.member("first")
    first.join("orders")
    first.heartbeat()
    assert first.assigned == talk.slots("orders")

Share coordinators are in memory (`states`), and answer at once unless a test says otherwise. Time
passes only in `pass_time`. Records are kept as bytes, and `restart` creates a new coordinator from
nothing else.
"""

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import TypeVar

from barnabas.groups.consumer.assignors.spec import Slot
from barnabas.groups.group_machine import GroupMachine, GroupSharing
from barnabas.groups.share.share_group import ShareGroup
from barnabas.metadata.features import SHARE_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import PartitionsAdded, TopicCreated, TopicDeleted
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.settings import GroupSettings, ShareSettings
from barnabas.protocol.coordinator_codec import Stored, decode_group_record
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.support.share_states import StatesInMemory

T = TypeVar("T")

START_MS = 1_700_000_000_000
GROUP = "group"
SOON_MS = 10


class ShareGroupTalk:
    """A coordinator, its log and its clock."""

    def __init__(
        self, topics: Mapping[str, int] | None = None, settings: ShareSettings | None = None
    ) -> None:
        self.settings = settings or ShareSettings()
        self.image = Image(feature_level=SHARE_LEVEL)
        self.states = StatesInMemory()
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
    def group(self) -> ShareGroup:
        """The group that members join."""
        group = self.machine.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def member(self, member_id: str) -> "ShareGroupMember":
        """Return a member that has not joined yet."""
        return ShareGroupMember(self, member_id)

    def heartbeat(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        """Return the response to a heartbeat; raise its `ApiError` if it fails."""
        caller = Caller("client", "/host", 1, self.wall_ms)
        return self.run(lambda: self.machine.share.heartbeat(request, caller))

    def refused(self, operation: Callable[[], object]) -> ErrorCode:
        """Return the error of an operation that must fail and store nothing."""
        before = len(self.log)
        try:
            response = operation()
        except ApiError as error:
            assert len(self.log) == before
            return error.code
        raise AssertionError(f"it succeeded: {response}")

    def run(self, operation: Callable[[], Outcome[T]]) -> T:
        """Run an operation; what it waits for must happen at once."""
        answer = self.begin(operation)
        self.pass_time(SOON_MS)
        taken: list[T] = []

        def fail(error: Exception) -> None:
            raise error

        answer.when_done(taken.append, fail)
        assert taken, "the answer waits"
        return taken[0]

    def begin(self, operation: Callable[[], Outcome[T]]) -> Pending[T]:
        """Run an operation; its records are committed at once. Return its answer."""
        outcome = operation()
        if outcome.records and self.refusal is not None:
            if outcome.refused is not None:
                outcome.refused(self.refusal)
            raise self.refusal
        self.log += outcome.records
        for record in outcome.records:
            self.machine.replay(record, None)
        if outcome.committed is not None:
            outcome.committed()
        response = outcome.response
        return response if isinstance(response, Pending) else Pending.of(response)

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
                self.begin(operation)
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
        self.begin(lambda: self.machine.topics_changed([]))

    def grow_topic(self, name: str, by: int = 1) -> None:
        """Add partitions to a topic."""
        topic_id = self.image.topics[name].topic_id.hex()
        self.image.replay(PartitionsAdded(topic_id=topic_id, replicas=[[1]] * by))
        self.begin(lambda: self.machine.topics_changed([]))

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.image.replay(TopicDeleted(topic_id=self.image.topics[name].topic_id.hex()))
        self.begin(lambda: self.machine.topics_changed([name]))

    def slots(self, *names: str) -> set[Slot]:
        """Return every partition of some topics."""
        topics = [self.image.topics[name] for name in names]
        return {(topic.topic_id, n) for topic in topics for n in range(len(topic.partitions))}

    def settle(self, members: Collection["ShareGroupMember"]) -> None:
        """Let every member learn its assignment."""
        for _ in range(3):
            for member in members:
                member.heartbeat()

    def replayed(self) -> GroupMachine:
        """Return another machine that has read the log."""
        sharing = GroupSharing(self.settings, self.states)
        machine = GroupMachine(
            GroupSettings(), self, lambda: self.image, Random(1), sharing=sharing
        )
        for record in self.log:
            machine.replay(record, None)
        return machine

    def _load(self) -> GroupMachine:
        machine = self.replayed()
        machine.loaded()
        return machine


class ShareGroupMember:
    """The client."""

    def __init__(self, talk: ShareGroupTalk, member_id: str) -> None:
        self._talk = talk
        self.member_id = member_id
        self.epoch = 0
        self.assigned: set[Slot] = set()
        """Its last assignment."""

    def join(self, *names: str) -> ShareGroupHeartbeatResponse:
        """Join, or rejoin, without partitions."""
        self.epoch, self.assigned = 0, set()
        return self.heartbeat(*names)

    def heartbeat(self, *names: str) -> ShareGroupHeartbeatResponse:
        """Send a heartbeat, with the subscription if there are names; keep the response."""
        response = self._talk.heartbeat(self.request(*names))
        assert response.member_id == self.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = {
                (TopicId(topic.topic_id), number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            }
        return response

    def leave(self) -> ShareGroupHeartbeatResponse:
        """Leave the group."""
        self.epoch, self.assigned = -1, set()
        return self._talk.heartbeat(self.request())

    def request(self, *names: str) -> ShareGroupHeartbeatRequest:
        """Return the next heartbeat."""
        return ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=list(names) or None,
        )


def share_reader(partitions: int = 4) -> tuple[ShareGroupTalk, ShareGroupMember]:
    """Return a talk about one topic, and a member that reads it."""
    talk = ShareGroupTalk({"t": partitions})
    member = talk.member("first")
    member.join("t")
    talk.settle([member])
    assert member.assigned == talk.slots("t")
    return talk, member
