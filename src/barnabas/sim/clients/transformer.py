"""A simulated consume-transform-produce application with exactly-once semantics (KIP-447).

The process has two parts. A group member owns the input partitions. A transactional producer writes
the output together with the input offsets. If the member lost a partition in the meantime, the
coordinator refuses the offsets because of their generation.
"""

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.ledger import End
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import BY_NAME, OFFSET_FETCH, fetch_from, fetch_offsets
from barnabas.sim.clients.reader import Shown, read_answer
from barnabas.sim.clients.simulated_classic_member import ClassicMember
from barnabas.sim.clients.transactional_producer import AbortableError, TransactionalProducer
from barnabas.sim.world import InvariantError

AT_ONCE_MAX = 3
IDLE_MS = 200
DELAY_CHANCE = 0.3
DELAY_MS_MAX = 3_500

Position = tuple[int, int]
"""A generation, and the next offset to read in it."""


class Transformer(TransactionalProducer):
    """Writes one output record for each record that its member consumes."""

    member: ClassicMember
    _positions: dict[TopicPartition, Position]

    def life(self) -> Talk:
        """Start without known positions."""
        self._positions = {}
        yield from super().life()

    def transact(self) -> Asking:
        """Process a few records in one transaction."""
        member = self.member
        membership = (member.member_id, member.generation)
        if not member.owned or member.generation < 0:
            yield Sleep(IDLE_MS)
            return
        partition = self.rng.choice(sorted(member.owned))
        offset = yield from self._position(partition, membership[1])
        found = None if offset is None else (yield from self._read(partition, offset))
        if not found:
            yield Sleep(IDLE_MS)
            return
        yield from self._process(partition, found, membership)

    def _process(
        self, partition: TopicPartition, found: list[Shown], membership: tuple[str, int]
    ) -> Asking:
        txn = self.begin()
        next_offset = found[-1].offset + 1
        wants = self.rng.choice((End.COMMIT, End.COMMIT, End.COMMIT, End.ABORT))
        del self._positions[partition]  # until it is known that the transaction is committed
        try:
            sources = [shown.value for shown in found]
            yield from self.write(txn, self.rng.choice(self.partitions), len(found), sources)
            assert self.group is not None
            yield from self._maybe_delay()
            yield from self.commit_offset(txn, self.group, partition, next_offset, membership)
        except AbortableError:
            wants = End.ABORT
        yield from self._maybe_delay()
        yield from self.finish(txn, wants)
        if txn.outcome is End.COMMIT:
            self._positions[partition] = (membership[1], next_offset)

    def _maybe_delay(self) -> Asking:
        """Sometimes wait so long that the group rebalances without this member."""
        if self.rng.random() < DELAY_CHANCE:
            yield Sleep(self.rng.randint(0, DELAY_MS_MAX))

    def _position(self, partition: TopicPartition, generation: int) -> Asking:
        """Return the next offset, which another member may have committed, if it is known."""
        known = self._positions.get(partition)
        if known is not None and known[0] == generation:
            return known[1]
        assert self.group is not None
        sent_ms = self.world.now_ms
        answer = yield from self.ask(fetch_offsets(self.group, [partition]), OFFSET_FETCH)
        if answer is None or answer.groups[0].error_code != 0:
            return None
        (part,) = answer.groups[0].topics[0].partitions
        if part.error_code != 0:
            return None
        self.note_read(self.group, partition, part, (sent_ms, self.world.now_ms))
        if not self.is_current(self.group):
            return None  # the offset may be outdated, and its records processed (see Cluster)
        offset = max(0, part.committed_offset)
        self._positions[partition] = (generation, offset)
        return offset

    def _read(self, partition: TopicPartition, offset: int) -> Asking:
        answer = yield from self.ask(fetch_from(partition, offset, committed=True), BY_NAME)
        if answer is None:
            return None
        (found,) = answer.responses[0].partitions
        code = ErrorCode(found.error_code)
        if self.is_retriable(code):
            return None
        if code is not ErrorCode.NONE:
            raise InvariantError(
                f"{self.name} fetched {partition} from {offset} and got {code.name}"
            )
        return read_answer(found, offset, committed=True).shown[:AT_ONCE_MAX]
