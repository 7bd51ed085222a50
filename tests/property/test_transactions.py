"""Tests the transaction coordinator with requests in any order.

Producers of both versions initialize, add, commit and abort, also late and twice. Commits of the
log are delayed. The coordinator crashes and restarts from what was committed. The invariants:

- an outcome in a response never changes
- an epoch of transaction version 2 ends at most one transaction
- markers are written only for outcomes that are committed
- an older instance can do nothing after a newer one was initialized
- a decided outcome is carried out before anything else happens, and always in the end
- another coordinator that reads the log has the same state
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.protocol.coordinator_codec import decode_transaction_record
from barnabas.transactions import transitions
from barnabas.transactions.state import State, Transaction, from_stored
from barnabas.transactions.transaction_machine import ASK_AGAIN, Wanted
from tests.support.examples import examples
from tests.support.talk.transactions import TIMEOUT_MS, TransactionTalk

NAMES = ("one", "two")
PARTITIONS = [TopicPartition("a", number) for number in range(3)]
STEPS = ("initialize", "go on", "add", "verify", "end", "end", "late end", "markers", "commit")
BUSY = frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT})
RARE = ("crash", "time", "hold", "refuse")


class Instance:
    """A producer's process: its last response, and the one before that."""

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.identities: list[ProducerIdAndEpoch] = []


class World:
    """A coordinator, some instances, and the responses that they got."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.talk = TransactionTalk()
        self.runner = self.talk.runner
        self.instances = [Instance(name, version) for name in NAMES for version in (0, 2, 2)]
        self.promised: dict[tuple[str, ProducerIdAndEpoch], bool] = {}
        self.fenced: dict[str, ProducerIdAndEpoch] = {}

    def step(self) -> None:
        rare = self.rng.random() < 0.15
        kind = self.rng.choice(RARE if rare else STEPS)
        getattr(self, kind.replace(" ", "_"))(self.rng.choice(self.instances))
        self.check()

    def initialize(self, instance: Instance) -> None:
        self._initialize(instance, None)

    def go_on(self, instance: Instance) -> None:
        if instance.identities:
            self._initialize(instance, self.rng.choice(instance.identities[-2:]))

    def _initialize(self, instance: Instance, expected: ProducerIdAndEpoch | None) -> None:
        answer = self.talk.ask(
            lambda m, spare_id: m.initialize(instance.name, TIMEOUT_MS, expected, spare_id)
        )

        def told(producer: ProducerIdAndEpoch) -> None:
            if producer != ASK_AGAIN:
                known = {i for other in self.instances for i in other.identities}
                assert expected is not None or producer not in known, (
                    "two instances have one producer id and epoch"
                )
                instance.identities.append(producer)
                self.fenced[instance.name] = producer

        self._hear(answer, told)

    def add(self, instance: Instance) -> None:
        if instance.identities:
            producer = self.rng.choice(instance.identities[-2:])
            chosen = self.rng.sample(PARTITIONS, self.rng.randint(1, 3))
            version = instance.version
            is_fenced = self._is_fenced(instance.name, producer)
            answer = self.talk.ask(lambda m, _: m.add(instance.name, producer, chosen, version))
            assert isinstance(answer, ErrorCode) or not is_fenced

    def verify(self, instance: Instance) -> None:
        if instance.identities:
            producer = self.rng.choice(instance.identities[-2:])
            is_fenced = self._is_fenced(instance.name, producer)
            answer = self.talk.ask(lambda m, _: m.verify(instance.name, producer, PARTITIONS))
            assert isinstance(answer, ErrorCode) or not is_fenced

    def end(self, instance: Instance) -> None:
        if instance.identities:
            self._end(instance, instance.identities[-1])

    def late_end(self, instance: Instance) -> None:
        if instance.identities:
            self._end(instance, self.rng.choice(instance.identities))

    def _end(self, instance: Instance, producer: ProducerIdAndEpoch) -> None:
        commit = self.rng.random() < 0.5
        answer = self.talk.send_end(
            producer, commit=commit, name=instance.name, version=instance.version
        )

        def told(after: ProducerIdAndEpoch) -> None:
            if instance.version < transitions.RAISES_EPOCH_FROM:
                return
            before = self.promised.setdefault((instance.name, producer), commit)
            assert before == commit, "one outcome was answered, and then the other"
            if producer == instance.identities[-1]:
                instance.identities.append(after)

        self._hear(answer, told)

    def markers(self, _: Instance) -> None:
        for transaction in self.talk.to_end:
            assert transaction in self._stored(self.runner.committed)
        if self.talk.to_end:
            self.talk.write_markers()

    def commit(self, _: Instance) -> None:
        self.runner.commit(self.rng.randint(0, 3))

    def hold(self, _: Instance) -> None:
        self.runner.hold_commits = not self.runner.hold_commits

    def crash(self, _: Instance) -> None:
        self.talk.to_end.clear()
        self.runner.crash()
        self.runner.pass_time(2)

    def time(self, _: Instance) -> None:
        self.runner.pass_time(self.rng.choice((1, TIMEOUT_MS // 2, TIMEOUT_MS)))

    def refuse(self, instance: Instance) -> None:
        known = self.talk.runner.machine.find(Wanted()).response
        self.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        for action in (self.initialize, self.add, self.end, self.time):
            action(instance)
        self.runner.refusal = None
        assert self.talk.runner.machine.find(Wanted()).response == known

    def check(self) -> None:
        """Load the log as another coordinator would."""
        ends: dict[tuple[str, ProducerIdAndEpoch], bool] = {}
        for transaction in self._stored(self.runner.committed):
            if not transaction.state.is_ending or transaction.version == 0:
                continue
            key = (transaction.transactional_id, transaction.producer)
            if key in ends:  # at most the abort of nothing, with which a new id is assigned
                assert not transaction.partitions, "an epoch ended two transactions"
                assert ends[key] is transaction.commits is False
            ends[key] = transaction.commits
        for (name, producer), commit in self.promised.items():
            signer = producer._replace(producer_epoch=producer.producer_epoch + 1)
            assert ends[name, signer] == commit, "a response differs from the log"
        known: dict[str, Transaction] = {}
        for transaction in self._stored(len(self.runner.log)):
            self._check_order(known.get(transaction.transactional_id), transaction)
            known[transaction.transactional_id] = transaction
        assert self.runner.machine.find(Wanted()).response == list(known.values())

    def settle(self) -> None:
        """Complete everything that is pending, after one more crash."""
        self.runner.hold_commits = False
        self.runner.commit()
        self.talk.to_end.clear()
        self.runner.crash()
        self.runner.pass_time(TIMEOUT_MS)
        self.markers(self.instances[0])
        self.check()
        left = self.runner.machine.find(Wanted(states=BUSY)).response
        assert left == [], "a transaction never ended"

    @staticmethod
    def _check_order(before: Transaction | None, after: Transaction) -> None:
        is_end = after.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        was_ending = before is not None and before.state.is_ending
        assert is_end == was_ending, "markers were overtaken"
        assert before is None or not was_ending or before.commits == after.commits

    def _is_fenced(self, name: str, producer: ProducerIdAndEpoch) -> bool:
        """Return whether a later instance got a response with its producer id and epoch."""
        latest = self.fenced.get(name)
        same = latest is not None and latest.producer_id == producer.producer_id
        return same and producer.producer_epoch < latest.producer_epoch  # type: ignore[union-attr]

    def _stored(self, count: int) -> list[Transaction]:
        found = []
        for entry in self.runner.log[:count]:
            for record in entry.records:
                stored = decode_transaction_record(record)
                assert stored is not None
                _, transaction = from_stored(stored)
                assert transaction is not None
                found.append(transaction)
        return found

    @staticmethod
    def _hear(
        answer: Pending[ProducerIdAndEpoch] | ErrorCode,
        told: Callable[[ProducerIdAndEpoch], None],
    ) -> None:
        if not isinstance(answer, ErrorCode):
            answer.when_done(told)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), steps=st.integers(10, 150))
def test_whatever_comes(seed: int, steps: int) -> None:
    world = World(Random(seed))
    for _ in range(steps):
        world.step()
    world.settle()


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_with_few_epochs(seed: int) -> None:
    """Test the same if producer ids are used up after three transactions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transitions, "EPOCH_MAX", 4)
        patch.setattr(transitions, "LAST_EPOCH", 3)
        world = World(Random(seed))
        for _ in range(150):
            world.step()
        world.settle()
        given_out = [i.producer_epoch for instance in world.instances for i in instance.identities]
        assert max(given_out, default=0) <= 3, "the last epoch is for fencing only"
