"""A simulated member of a `consumer` group (KIP-848): follows each heartbeat response.

It first gives up the partitions that it must give up, and reports that. Then it takes the
partitions of its assignment. After a missing response it sends a full heartbeat.
"""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import GROUP
from barnabas.sim.clients.simulated_member import Member
from barnabas.sim.world import InvariantError

REBALANCE_MS = 10_000
LEAVES, LEAVES_FOR_A_WHILE = -1, -2
LOST_MEMBERSHIP = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}


class ConsumerMember(Member):
    """Shares the partitions of one topic with other members."""

    topic: str
    topic_ids: dict[bytes, str]
    epoch = 0
    _assigned: set[TopicPartition]
    _reported: set[TopicPartition] | None = None
    _joins = 0

    @property
    def settled(self) -> bool:
        """Whether the member has an epoch, and owns what it was assigned."""
        return self.epoch > 0 and self.owned == self._assigned

    def life(self) -> Talk:
        """Send heartbeats until the run ends."""
        yield from self.find(self.group, GROUP)
        self._begin()
        while not self.closing:
            yield from self._report()
            yield Sleep(self.rng.randint(100, 1_000))
            if self.owned and self.epoch > 0 and self.rng.random() < 0.5:
                yield from self._commit()
        yield from self._leave()

    def died(self) -> None:
        """Drop all partitions."""
        self.ownership.forget(self.group, self.member_id)
        self.owned = set()

    def _begin(self) -> None:
        """Take a new member id; the coordinator finds a static member by its instance id."""
        self._joins += 1
        self.ownership.forget(self.group, self.member_id)
        self.member_id = f"{self.name}.{self.lives}.{self._joins}"
        self.epoch, self.owned, self._assigned, self._reported = 0, set(), set(), None

    def _report(self) -> Asking:
        owned, sent_ms, joins = set(self.owned), self.world.now_ms, self._joins
        before = self.epoch
        answer = yield from self.ask(self._request(full=self._reported is None))
        if answer is None:
            self._reported = None
            return
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            assert joins == self._joins
            if before and answer.member_epoch < before:
                raise InvariantError(f"{self.name} goes back to epoch {answer.member_epoch}")
            self._apply_assignment(answer, owned, sent_ms)
        elif code in LOST_MEMBERSHIP:
            self.world.note(self.name, f"lost its membership: {code.name}")
            self._begin()
        elif self.is_retriable(code):
            self._reported = None
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID and self.instance_id and not before:
            yield from self.pause_before_retry()
        else:
            raise InvariantError(f"{self.name} got {code.name}")

    def _request(self, *, full: bool) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )
        if full or self.owned != self._reported:
            request.topic_partitions = self._owned_by_topic()
        if full:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = [self.topic]
            request.server_assignor = None
        return request

    def _owned_by_topic(self) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        numbers = sorted(partition.partition for partition in self.owned)
        if not numbers:
            return []
        (topic_id,) = [key for key, name in self.topic_ids.items() if name == self.topic]
        return [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=numbers)]

    def _apply_assignment(
        self, answer: ConsumerGroupHeartbeatResponse, owned: set[TopicPartition], sent_ms: int
    ) -> None:
        self.epoch = answer.member_epoch
        self._reported = owned
        if answer.assignment is not None:
            self._assigned = self._partitions_in(answer.assignment)
        if self.owned != self._assigned:
            numbers = sorted(partition.partition for partition in self._assigned)
            self.world.note(self.name, f"owns {numbers} in epoch {self.epoch}")
        # The coordinator assigns only partitions that are free, so both can change at once.
        self.owned = set(self._assigned)
        if self.is_current(self.group):
            self.ownership.confirm_owned(self.group, self.member_id, self.owned, sent_ms)
        else:
            self.ownership.forget(self.group, self.member_id)

    def _partitions_in(self, assignment: Assignment) -> set[TopicPartition]:
        return {
            TopicPartition(self.topic_ids[topic.topic_id], number)
            for topic in assignment.topic_partitions
            for number in topic.partitions
        }

    def _commit(self) -> Asking:
        partition = self.rng.choice(sorted(self.owned))
        other = self.ownership.owner(self.group, partition, but=self.member_id)
        membership = (self.member_id, self.epoch)
        code = yield from self.commit(partition, self.rng.randint(0, 1_000), membership)
        if code is ErrorCode.NONE and other is not None:
            raise InvariantError(
                f"{self.name} committed an offset for {partition}, which {other} owns"
            )

    def _leave(self) -> Asking:
        self.ownership.forget(self.group, self.member_id)
        self.owned = set()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=LEAVES if self.instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=self.instance_id,
        )
        while True:
            answer = yield from self.ask(request)
            if answer is not None and not self.is_retriable(ErrorCode(answer.error_code)):
                return
            yield from self.pause_before_retry()
