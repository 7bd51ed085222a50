"""A simulated consume-transform-produce application with exactly-once semantics (KIP-447).

A process with two faces: a member of a group, which says what is its to read, and a transactional
producer, which writes what it made of it together with how far it has read. A share that was taken
away in the meantime is refused by its generation.
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
DAWDLES = 0.3
DAWDLE_MS_MAX = 3_500

Position = tuple[int, int]
"""A generation, and the offset to read on from in it."""


class Transformer(TransactionalProducer):
    """Writes a record for each record that its member is to read."""

    member: ClassicMember
    _positions: dict[TopicPartition, Position]

    def life(self) -> Talk:
        """Begin with nothing known of where to read on."""
        self._positions = {}
        yield from super().life()

    def transact(self) -> Asking:
        """Take a few records further."""
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
        yield from self._take_further(partition, found, membership)

    def _take_further(
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
            yield from self._dawdle()
            yield from self.commit_offset(txn, self.group, partition, next_offset, membership)
        except AbortableError:
            wants = End.ABORT
        yield from self._dawdle()
        yield from self.finish(txn, wants)
        if txn.outcome is End.COMMIT:
            self._positions[partition] = (membership[1], next_offset)

    def _dawdle(self) -> Asking:
        """Take so long now and then that the group may go on without it."""
        if self.rng.random() < DAWDLES:
            yield Sleep(self.rng.randint(0, DAWDLE_MS_MAX))

    def _position(self, partition: TopicPartition, generation: int) -> Asking:
        """Return where to read on, which another may have decided; None where nobody knows yet."""
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
            return None  # to read on from there could make twice what was made (see Cluster)
        offset = max(0, part.committed_offset)
        self._positions[partition] = (generation, offset)
        return offset

    def _read(self, partition: TopicPartition, offset: int) -> Asking:
        answer = yield from self.ask(fetch_from(partition, offset, committed=True), BY_NAME)
        if answer is None:
            return None
        (found,) = answer.responses[0].partitions
        code = ErrorCode(found.error_code)
        if self.passes(code):
            return None
        if code is not ErrorCode.NONE:
            raise InvariantError(f"{self.name} reads {partition} at {offset}: {code.name}")
        return read_answer(found, offset, committed=True).shown[:AT_ONCE_MAX]
