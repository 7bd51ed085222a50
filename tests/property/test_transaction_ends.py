"""A node ends transactions while markers are refused, late, or lost in a crash.

- no transaction is complete before each of its partitions has its marker, or is deleted
- every partition gets one outcome for an epoch, however often its marker is written
- in the end all are complete, and waiting requests have got a response
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.transactions.state import Transaction
from barnabas.transactions.transaction_machine import Wanted
from tests.support.examples import examples
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.markers import Markers
from tests.support.talk.requests import create_topic
from tests.support.talk.transaction_requests import (
    NAME,
    add_codes,
    find_coordinator,
    send_add,
    send_end,
    send_initialize,
)

PLACES = [TopicPartition("a", number) for number in range(3)]
REFUSALS = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
STEPS = ("begin", "begin", "end", "hold", "release", "fail", "refuse", "allow", "wait", "crash")


class World:
    """A node, a producer, and markers that fail."""

    def __init__(self, talk: Dialogue, markers: Markers, rng: Random) -> None:
        self.talk = talk
        self.markers = markers
        self.rng = rng
        self.ending: list[Transaction] = []
        self.gone: set[TopicPartition] = set()
        self.asked: list[Exchange] = []
        self.producer = self._initialize()
        self._watch()

    def step(self) -> None:
        getattr(self, self.rng.choice(STEPS))()
        self.check()

    def begin(self) -> None:
        """Open a transaction; a producer with an error or no response requests a new epoch."""
        chosen = self.rng.sample(PLACES, self.rng.randint(1, 3))
        exchange = send_add(self.talk, self.producer, *chosen)
        if exchange.waiting:
            self.asked.append(exchange)
        elif any(add_codes(exchange)):
            self.producer = self._initialize()

    def end(self) -> None:
        exchange = send_end(self.talk, self.producer, commit=self.rng.random() < 0.5)
        if exchange.waiting:
            self.asked.append(exchange)
        elif exchange.answer.error_code == 0:
            answer = exchange.answer
            self.producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    def hold(self) -> None:
        self.markers.hold = not self.markers.hold

    def release(self) -> None:
        self.markers.release(self.rng.randint(1, 3))
        self.talk.settle()

    def fail(self) -> None:
        self.markers.fail(ErrorCode.KAFKA_STORAGE_ERROR)

    def refuse(self) -> None:
        place, code = self.rng.choice(PLACES), self.rng.choice(REFUSALS)
        self.markers.refusals[place] = code
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.gone.add(place)

    def allow(self) -> None:
        self.markers.refusals.clear()

    def wait(self) -> None:
        self.talk.pass_time(self.rng.choice((1, 50, 1000)))

    def crash(self) -> None:
        self.markers.forget()
        self.asked.clear()
        self.talk.restart(crash=True)
        self._watch()
        self.talk.pass_time(1)

    def settle(self) -> None:
        self.markers.hold = False
        self.markers.refusals.clear()
        self.markers.release()
        for _ in range(5):
            self.talk.pass_time(1000)
        self.check()
        assert not [t for t in self._known() if t.state.is_ending]
        assert all(not exchange.waiting for exchange in self.asked)

    def check(self) -> None:
        written = {(place, m.producer_id, m.producer_epoch) for place, m in self.markers.written}
        busy = {t.producer for t in self._known() if t.state.is_ending}
        for transaction in self.ending:
            if transaction.producer not in busy:
                missing = [
                    place
                    for place in transaction.partitions
                    if place not in self.gone and (place, *transaction.producer) not in written
                ]
                assert missing == [], "complete without its markers"
        outcomes: dict[tuple[TopicPartition, int, int], bool] = {}
        for place, marker in self.markers.written:
            key = (place, marker.producer_id, marker.producer_epoch)
            assert outcomes.setdefault(key, marker.commit) == marker.commit

    def _known(self) -> list[Transaction]:
        shard = self.talk.node.coordinators.transactions.shard_for(NAME)
        found = shard.machine.find(Wanted()).response
        assert not isinstance(found, Pending)
        return found

    def _watch(self) -> None:
        """Record every transaction whose markers are to be written."""
        transactions = self.talk.node.transactions
        end = transactions.end

        def noted(shard: object, ending: Transaction) -> None:
            self.ending.append(ending)
            end(shard, ending)  # type: ignore[arg-type]

        transactions.end = noted  # type: ignore[method-assign]

    def _initialize(self) -> ProducerIdAndEpoch:
        exchange = send_initialize(self.talk)
        if exchange.waiting:
            self.talk.pass_time(1000)
        answer = exchange.answer
        if answer.error_code:
            return self.producer
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_whatever_becomes_of_the_markers(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    markers = Markers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.node.coordination.marker_writing.write_marker", markers.write)
        talk = Dialogue(tmp_path_factory.mktemp("ends"), {"transactions.log_partitions": 1})
        create_topic(talk, "a", 3)
        find_coordinator(talk)
        world = World(talk, markers, Random(seed))
        for _ in range(60):
            world.step()
        world.settle()
