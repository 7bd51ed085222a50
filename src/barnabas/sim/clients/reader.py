"""Simulated consumers of single partitions, at either isolation level.

A read_committed reader skips aborted records as clients do: it ignores a producer's records from
the first offset in the response's list of aborted transactions to the transaction's marker.
"""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.markers import ABORT, COMMIT, parse_marker
from barnabas.protocol.records import BatchHeader, batches, records, verify
from barnabas.sim.checks.ledger import Ledger
from barnabas.sim.checks.monotonic_checks import NO_FLOOR, MonotonicChecks
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import BY_NAME, fetch_from
from barnabas.sim.clients.coordinated import CoordinatedClient
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError, World

FETCH_WAIT_MS = 300


class Shown(NamedTuple):
    """A record that a reader received."""

    offset: int
    value: str


class Ended(NamedTuple):
    """A transaction marker that a reader received."""

    offset: int
    producer_id: int
    commits: bool


class Fetched(NamedTuple):
    """The content of one response."""

    shown: list[Shown]
    ends: list[Ended]
    next_offset: int


class Reader(CoordinatedClient):
    """Reads one partition from its beginning, repeatedly."""

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        name: str,
        ledger: Ledger,
        monotonic: MonotonicChecks,
        partition: TopicPartition,
        *,
        committed: bool,
    ) -> None:
        super().__init__(world, cluster, name)
        self.ledger = ledger
        self.monotonic = monotonic
        self.partition = partition
        self.committed = committed
        self.shown: list[Shown] = []
        self.ends: list[Ended] = []
        self.position = 0
        self.caught_up = False
        """Whether the last response had no more records."""

    def life(self) -> Talk:
        """Read until the run ends."""
        self.shown, self.ends, self.position = [], [], 0
        while not self.closing:
            yield from self.read_once(FETCH_WAIT_MS)
            yield Sleep(self.rng.randint(0, 300))

    def read_to_end(self) -> Asking:
        """Read until there are no more records."""
        self.caught_up = False
        while not self.caught_up:
            yield from self.read_once(0)

    def read_once(self, wait_ms: int) -> Asking:
        """Fetch once, and check the response."""
        replicas = [self._replica(host, host.life) for host in self.cluster.hosts]
        floors = {each: self.monotonic.floor(each) for each in replicas}
        request = fetch_from(
            self.partition, self.position, committed=self.committed, wait_ms=wait_ms
        )
        answer = yield from self.ask(request, BY_NAME)
        if answer is None:
            return
        (found,) = answer.responses[0].partitions
        code = ErrorCode(found.error_code)
        if self.is_retriable(code) or code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            yield from self.pause_before_retry()
            return
        if code is not ErrorCode.NONE:
            raise InvariantError(f"{self.name} fetched from {self.position} and got {code.name}")
        replica = self._replica(self.last_broker, self.last_life)
        floor = floors.get(replica, NO_FLOOR)
        self.monotonic.observe(replica, floor, found.high_watermark, found.last_stable_offset)
        self._take(read_answer(found, self.position, committed=self.committed))

    def is_retriable(self, code: ErrorCode) -> bool:
        """Tolerate a replica that is damaged, or behind the replica that was read before."""
        behind = self.routes.reads_from_followers and code is ErrorCode.OFFSET_OUT_OF_RANGE
        damaged = code is ErrorCode.CORRUPT_MESSAGE and any(h.damaged for h in self.cluster.hosts)
        return behind or damaged or super().is_retriable(code)

    def _replica(self, host: Host, life: int) -> Hashable:
        """Return the key under which watermarks are compared."""
        if self.cluster.is_lone:
            return self.partition
        return (self.partition, host.name, life)

    def _take(self, fetched: Fetched) -> None:
        self.caught_up = fetched.next_offset == self.position
        self.position = fetched.next_offset
        for shown in fetched.shown:
            self._check_record(shown)
        self.shown += fetched.shown
        self.ends += fetched.ends

    def _check_record(self, shown: Shown) -> None:
        sent = self.ledger.records.get(shown.value)
        if sent is None or sent.partition != self.partition:
            raise InvariantError(f"{self.name} got {shown}, which no client wrote there")
        if self.shown and self.shown[-1].offset >= shown.offset:
            raise InvariantError(f"{self.name} got {shown} after {self.shown[-1]}")
        if self.committed and sent.txn is not None and not sent.txn.may_commit:
            raise InvariantError(
                f"{self.name} got {shown} of {sent.txn.name}, which was not committed"
            )


def read_answer(found: Any, position: int, *, committed: bool) -> Fetched:  # noqa: ANN401
    """Decode the response for a partition, as a client does."""
    coming = sorted(
        ((t.first_offset, t.producer_id) for t in found.aborted_transactions or ()), reverse=True
    )
    ignored: set[int] = set()
    result = Fetched([], [], position)
    next_offset = position
    for header, batch in batches(found.records or b""):
        verify(batch, header)
        while coming and coming[-1][0] <= header.last_offset:
            ignored.add(coming.pop()[1])
        next_offset = header.last_offset + 1
        if header.is_control:
            _take_marker(header, batch, result.ends, ignored)
        elif not (committed and header.is_transactional and header.producer_id in ignored):
            result.shown.extend(_from(header, batch, position))
    return result._replace(next_offset=next_offset)


def _take_marker(
    header: BatchHeader, batch: memoryview, ends: list[Ended], ignored: set[int]
) -> None:
    kind = parse_marker(batch, header).kind
    if kind == ABORT:
        ignored.discard(header.producer_id)
    ends.append(Ended(header.base_offset, header.producer_id, kind == COMMIT))


def _from(header: BatchHeader, batch: memoryview, position: int) -> Iterable[Shown]:
    for record in records(batch, header):
        if record.offset >= position:
            yield Shown(record.offset, (record.value or b"").decode())
