"""The base class of clients that use coordinators: it knows which errors are retriable."""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.ledger import Ledger, OffsetRead
from barnabas.sim.clients.actor import Actor, Answer, Asking, Sleep
from barnabas.sim.clients.client_requests import coordinator
from barnabas.sim.world import InvariantError

PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
PASSING_IN_CLUSTERS = PASSING | {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Where several brokers have to agree, each of them may be the wrong one, or behind."""
RETRY_MS = 100


class Coordinated(Actor):
    """A client that looks for its coordinator first."""

    ledger: Ledger

    @property
    def life_name(self) -> str:
        """The client in this life."""
        return f"{self.name}/{self.lives}"

    def passes(self, code: ErrorCode) -> bool:
        """Tell whether an error goes away by itself, so that the same may be asked again."""
        return code in (PASSING if self.cluster.is_lone else PASSING_IN_CLUSTERS)

    def find(self, key: str, key_type: int) -> Asking:
        """Find the coordinator, however long it takes."""
        while True:
            answer = yield from self.ask(coordinator(key, key_type))
            if answer is not None and answer.coordinators[0].error_code == 0:
                return None
            yield Sleep(RETRY_MS)

    def is_current(self, group: str) -> bool:
        """Tell whether who answered last still coordinates a group."""
        return self.cluster.coordinates(self.last_asked, group)

    def note_read(
        self, group: str, partition: TopicPartition, found: Answer, times: tuple[int, int]
    ) -> None:
        """Take note of an offset that was looked up between two times; it must be somebody's."""
        note, offset = found.metadata or "", found.committed_offset
        write = self.ledger.writes.get(note) if note else None
        if offset >= 0 and (write is None or (write.group, write.partition) != (group, partition)):
            raise InvariantError(f"{group} has {offset} {note!r} for {partition}: whose?")
        if write is not None and write.offset != offset:
            raise InvariantError(f"{note} says {write.offset}, and {offset} was found")
        read = OffsetRead(group, partition, write, *times, self.is_current(group))
        self.ledger.reads.append(read)

    def pause_before_retry(self) -> Asking:
        """Wait a little."""
        yield Sleep(self.rng.randint(1, RETRY_MS))
        return None
