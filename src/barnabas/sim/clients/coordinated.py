"""The base class of clients that use coordinators: it knows which errors are retriable."""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.ledger import Ledger, OffsetRead
from barnabas.sim.clients.actor import Actor, Answer, Asking, Sleep
from barnabas.sim.clients.client_requests import coordinator
from barnabas.sim.world import InvariantError

RETRIABLE = {
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
RETRIABLE_IN_CLUSTERS = RETRIABLE | {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Retriable errors in a cluster, where a broker may be the wrong one or have old metadata."""
DENIALS = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED}
"""Errors in a cluster with an authorizer: an operator gives each right back after a while."""
RETRY_MS = 100


class CoordinatedClient(Actor):
    """A client that finds its coordinator first."""

    ledger: Ledger

    @property
    def life_name(self) -> str:
        """The name of the client in its current life."""
        return f"{self.name}/{self.lives}"

    def is_retriable(self, code: ErrorCode) -> bool:
        """Return whether an error is retriable."""
        if self.cluster.operator is not None and code in DENIALS:
            return True
        return code in (RETRIABLE if self.cluster.is_lone else RETRIABLE_IN_CLUSTERS)

    def find(self, key: str, key_type: int) -> Asking:
        """Find the coordinator, however long it takes."""
        while True:
            answer = yield from self.ask(coordinator(key, key_type))
            if answer is not None and answer.coordinators[0].error_code == 0:
                return None
            yield Sleep(RETRY_MS)

    def is_current(self, group: str) -> bool:
        """Return whether the broker that answered last is still the coordinator of a group."""
        return self.cluster.coordinates(self.last_broker, group)

    def note_read(
        self, group: str, partition: TopicPartition, found: Answer, times: tuple[int, int]
    ) -> None:
        """Record an offset that was fetched between two times; a client must have committed it."""
        note, offset = found.metadata or "", found.committed_offset
        write = self.ledger.writes.get(note) if note else None
        if offset >= 0 and (write is None or (write.group, write.partition) != (group, partition)):
            raise InvariantError(
                f"{group} has offset {offset} {note!r} for {partition}, which no client committed"
            )
        if write is not None and write.offset != offset:
            raise InvariantError(
                f"{note} is a commit of offset {write.offset}, but the fetch found {offset}"
            )
        read = OffsetRead(group, partition, write, *times, self.is_current(group))
        self.ledger.reads.append(read)

    def pause_before_retry(self) -> Asking:
        """Wait before a retry."""
        yield Sleep(self.rng.randint(1, RETRY_MS))
        return None
