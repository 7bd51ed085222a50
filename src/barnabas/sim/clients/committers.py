"""Simulated clients that commit offsets without being group members, and delete groups."""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import GROUP, OFFSET_FETCH, fetch_offsets
from barnabas.sim.clients.simulated_member import GroupClient
from barnabas.sim.world import InvariantError

PARTITIONS_MAX = 6


class Committer(GroupClient):
    """Commits and fetches offsets. Several committers share a group and its partitions."""

    partitions: list[TopicPartition]

    def life(self) -> Talk:
        """Commit and fetch offsets, in random order."""
        yield from self.find(self.group, GROUP)
        while not self.closing:
            if self.rng.random() < 0.6:
                partition = self.rng.choice(self.partitions)
                yield from self.commit(partition, self.rng.randint(0, 1_000))
            else:
                yield from self.look_up(self.partitions)
            yield Sleep(self.rng.randint(0, 600))


class Admin(GroupClient):
    """Adds partitions to a topic, and deletes its own group after it committed an offset there."""

    partitions: list[TopicPartition]
    """The partitions of the topic that it grows; it appends the new ones."""

    def life(self) -> Talk:
        """Grow the topic or delete the group, in random order."""
        yield from self.find(self.group, GROUP)
        while not self.closing:
            yield Sleep(self.rng.randint(500, 4_000))
            if self.rng.random() < 0.4 and len(self.partitions) < PARTITIONS_MAX:
                yield from self._grow()
            else:
                yield from self._commit_and_delete()

    def is_retriable(self, code: ErrorCode) -> bool:
        """Treat an error as retriable; in a cluster also a lack of brokers."""
        lacks_brokers = code is ErrorCode.INVALID_REPLICATION_FACTOR and not self.cluster.is_lone
        return lacks_brokers or super().is_retriable(code)

    def _grow(self) -> Asking:
        topic, count = self.partitions[0].topic, len(self.partitions) + 1
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=5_000)
        while True:
            answer = yield from self.ask(request)
            code = None if answer is None else ErrorCode(answer.results[0].error_code)
            if code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):
                break  # the latter if an earlier request created it
            if code is not None and not self.is_retriable(code):
                raise InvariantError(f"{self.name} may not add partitions to {topic}: {code.name}")
            yield from self.pause_before_retry()
        self.partitions.append(TopicPartition(topic, count - 1))
        self.world.note(self.name, f"has {count} partitions of {topic}")

    def _commit_and_delete(self) -> Asking:
        code = yield from self.commit(self.partitions[0], self.rng.randint(0, 1_000))
        if code is not ErrorCode.NONE:
            return
        asked_ms = self.world.now_ms
        while True:
            answer = yield from self.ask(DeleteGroupsRequest(groups_names=[self.group]))
            code = None if answer is None else ErrorCode(answer.results[0].error_code)
            if code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                yield from self._find_nothing(asked_ms)
                return
            if code is not None and not self.is_retriable(code):
                raise InvariantError(f"{self.name} may not delete {self.group}: {code.name}")
            yield from self.pause_before_retry()

    def _find_nothing(self, deleted_ms: int) -> Asking:
        """Check that offsets confirmed before the deletion are gone; late commits may be there."""
        answer = yield from self.ask(fetch_offsets(self.group, self.partitions[:1]), OFFSET_FETCH)
        if answer is None or answer.groups[0].error_code != 0 or not self.is_current(self.group):
            return
        (part,) = answer.groups[0].topics[0].partitions
        write = self.ledger.writes.get(part.metadata or "")
        if write is not None and write.confirmed_ms <= deleted_ms:
            raise InvariantError(f"{self.group} was deleted, but {write.note} is still there")
