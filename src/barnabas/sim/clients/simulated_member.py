"""The base class of simulated group members of both kinds: they commit and fetch offsets."""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.ledger import Ledger, OffsetWrite
from barnabas.sim.checks.monotonic_checks import MonotonicChecks
from barnabas.sim.checks.ownership_checks import Ownership
from barnabas.sim.clients.actor import Asking
from barnabas.sim.clients.client_requests import (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    commit_offset,
    fetch_offsets,
)
from barnabas.sim.clients.coordinated import CoordinatedClient
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError, World


class GroupClient(CoordinatedClient):
    """A client that commits offsets of a group."""

    def __init__(
        self, world: World, cluster: Cluster, name: str, group: str, ledger: Ledger
    ) -> None:
        super().__init__(world, cluster, name)
        self.group = group
        self.ledger = ledger
        self.committed = 0

    def commit(
        self,
        partition: TopicPartition,
        offset: int,
        membership: tuple[str, int] = ("", -1),
        instance: str | None = None,
    ) -> Asking:
        """Commit once; return the error code, or None if there was no response."""
        write = self.ledger.write(self.group, partition, offset, self.world.now_ms)
        member, epoch = membership
        request = commit_offset(
            self.group,
            partition,
            offset,
            write.note,
            member=member,
            epoch=epoch,
            instance=instance,
        )
        answer = yield from self.ask(request, OFFSET_COMMIT)
        if answer is None:
            return None
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        self._confirm(write, code)
        return code

    def look_up(self, partitions: list[TopicPartition]) -> Asking:
        """Fetch committed offsets once, and record the result; return whether it was complete."""
        sent_ms = self.world.now_ms
        answer = yield from self.ask(fetch_offsets(self.group, partitions), OFFSET_FETCH)
        if answer is None or self.is_retriable(ErrorCode(answer.groups[0].error_code)):
            return False
        group = answer.groups[0]
        if group.error_code != 0:
            raise InvariantError(
                f"{self.name} got {ErrorCode(group.error_code)} for committed offsets"
            )
        whole = True
        for topic in group.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code == 0:
                    times = (sent_ms, self.world.now_ms)
                    self.note_read(self.group, partition, part, times)
                elif self.is_retriable(ErrorCode(part.error_code)):
                    whole = False
                else:
                    raise InvariantError(f"{partition}: {ErrorCode(part.error_code)}")
        return whole

    def _confirm(self, write: OffsetWrite, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            self.committed += 1
            write.stored_ms = write.confirmed_ms = self.world.now_ms
            self.world.note(self.name, f"has {write.note} confirmed: {write.offset}")
        elif not self.is_retriable(code):
            write.refused = True


class Member(GroupClient):
    """A member of a group, which shares partitions with other members."""

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        name: str,
        group: str,
        ledger: Ledger,
        ownership: Ownership,
        monotonic: MonotonicChecks,
        *,
        instance: str | None = None,
    ) -> None:
        super().__init__(world, cluster, name, group, ledger)
        self.ownership = ownership
        self.monotonic = monotonic
        self.instance_id = instance
        self.member_id = ""
        self.owned: set[TopicPartition] = set()

    @property
    def settled(self) -> bool:
        """Whether the member knows its assignment and no change is pending."""
        raise NotImplementedError
