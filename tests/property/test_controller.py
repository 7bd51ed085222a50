"""Brokers start, stop, crash and lose disks; leaders propose, operators move: nothing is lost.

A model keeps the records of each replica. A record is acknowledged when enough replicas are in sync
and all of them have it. A crash loses unflushed records. A replica that may be elected cleanly must
have all acknowledged records, for any order of events.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from barnabas.controller import brokers, elections, isr_decisions, placement
from barnabas.controller.partition_change import in_order
from barnabas.controller.topic_rules import rules_of
from barnabas.metadata.image import Image, PartitionImage
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_partition import BrokerState
from tests.support.examples import examples
from tests.support.talk.controller_talk import SESSION_MS, ControllerTalk

NODES = [1, 2, 3, 4]
TOPICS = {
    "kept": {"min_insync_replicas": "2"},
    "strict": {"min_insync_replicas": "3"},
    "risky": {"min_insync_replicas": "2", "flush": "interval"},
    "alone": {"min_insync_replicas": "1"},
}
nodes = st.sampled_from(NODES)
names = st.sampled_from(sorted(TOPICS))


@dataclass
class Data:
    """The acknowledged records of a partition, and how many of them each broker has."""

    acknowledged: int = 0
    held: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Proposal:
    """A leader's proposal, with the state that it was based on."""

    name: str
    seen: PartitionImage
    members: tuple[int, ...]
    epochs: dict[int, int]


class Controller(RuleBasedStateMachine):
    """A cluster of four brokers, and topics with all kinds of settings."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = ControllerTalk()
        for node_id in NODES:
            self.talk.start(node_id, rack="ab"[node_id % 2])
        for name, config in TOPICS.items():
            self.talk.create([1, 2, 3], name=name, **config)
        self.data = {name: Data() for name in TOPICS}
        self.proposals: list[Proposal] = []
        self.disks = 0
        self.before = self.talk.image.fork()

    def partition(self, name: str) -> PartitionImage:
        return self.talk.partition(0, name)

    def registered(self, node_id: int) -> bool:
        return node_id in self.talk.image.brokers

    # Brokers

    @rule(node_id=nodes, caught_up=st.booleans())
    def heartbeat(self, node_id: int, caught_up: bool) -> None:
        if self.registered(node_id):
            applied = None if caught_up else 0
            self.talk.heartbeat(node_id, applied=applied)

    @rule()
    def recover(self) -> None:
        """Start all brokers, and let them catch up."""
        for node_id in NODES:
            self.come_back(node_id)
            if self.talk.broker(node_id).stopping:
                self.restart(node_id, clean=True, let_in=True)
            self.heartbeat(node_id, caught_up=True)
        for name in sorted(TOPICS):
            if self.partition(name).leader != -1:
                self.propose(name, set(NODES))
                self.hear(-1)

    @rule(node_id=nodes)
    def stop(self, node_id: int) -> None:
        if self.registered(node_id) and self.talk.heartbeat(node_id, stop=True).should_shut_down:
            heirs = [n for n in self.talk.image.brokers if self.talk.image.is_active(n)]
            leads = [name for name in TOPICS if self.partition(name).leader == node_id]
            assert not leads or heirs in ([], [node_id])

    @rule(node_id=nodes)
    def fence(self, node_id: int) -> None:
        if self.registered(node_id):
            self.talk.fence(node_id)

    @rule(silence_ms=st.integers(1, SESSION_MS // 2))
    def pass_time(self, silence_ms: int) -> None:
        self.talk.now_ms += silence_ms
        while due := self.talk.heartbeats.due(self.talk.image, self.talk.now_ms):
            self.talk.fence(due[0])

    @rule(node_id=nodes, clean=st.booleans(), let_in=st.booleans())
    def restart(self, node_id: int, clean: bool, let_in: bool) -> None:
        if not self.registered(node_id):
            return
        if not clean:
            self._lose(node_id, [n for n in TOPICS if not self._flushes(n)])
        self.talk.restart(node_id, clean=clean)
        self._accept_loss(node_id)
        if let_in:
            self.talk.heartbeat(node_id)

    @rule(node_id=nodes)
    def lose_disk(self, node_id: int) -> None:
        if not self.registered(node_id):
            return
        self.disks += 1
        disk = self.disks.to_bytes(16, "big")
        request = self.talk.registration(node_id, directory=disk)
        if self.talk.heartbeats.in_session(node_id, self.talk.now_ms):
            self.talk.now_ms += SESSION_MS
            self.pass_time(0)
        self._lose(node_id, list(TOPICS))
        self.talk.register(request)
        self._accept_loss(node_id)

    @rule(node_id=nodes)
    def unregister(self, node_id: int) -> None:
        if self.registered(node_id):
            self.talk.unregister(node_id)

    @rule(node_id=nodes)
    def come_back(self, node_id: int) -> None:
        if not self.registered(node_id):
            self._lose(node_id, list(TOPICS))
            self.talk.register(self.talk.registration(node_id))
            self._accept_loss(node_id)

    @rule()
    def change_controllers(self) -> None:
        successor = Image()
        for record in self.talk.image.snapshot():
            successor.replay(record)
        assert successor == self.talk.image
        self.talk.image = successor
        self.talk.heartbeats.begin(successor, self.talk.now_ms, self.talk.end_offset)

    # Leaders

    @rule()
    def produce(self) -> None:
        """Acknowledge a record in each topic whose leader would."""
        for name in TOPICS:
            self._produce(name)

    def _produce(self, name: str) -> None:
        now, data = self.partition(name), self.data[name]
        topic = self.talk.image.topics[name]
        if now.leader == -1 or not rules_of(topic, self.talk.defaults).has_enough_in_sync(now):
            return
        in_flight = [p for p in self.proposals if p.name == name and p.seen == now]
        needed = {*now.isr, *(member for p in in_flight for member in p.members)}
        current = {b.node_id: b.broker_epoch for b in self.talk.image.brokers.values()}
        for proposal in in_flight:
            if any(current.get(n) != proposal.epochs.get(n) for n in proposal.members):
                return  # a replica that the leader counts does not answer any longer
        data.acknowledged += 1
        for node_id in sorted(needed):
            data.held[node_id] = data.acknowledged

    @rule(name=names, members=st.just(set(NODES)) | st.sets(nodes))
    def propose(self, name: str, members: set[int]) -> None:
        """Let a leader propose its ISR; the proposal arrives some time, or never."""
        now, data = self.partition(name), self.data[name]
        if now.leader == -1:
            return
        isr = tuple(in_order(now.replicas, {*members, now.leader}))
        present = [n for n in isr if self.registered(n)]
        for node_id in present:
            if node_id not in now.isr:
                data.held[node_id] = data.acknowledged
        epochs = {n: self.talk.broker(n).broker_epoch for n in present}
        self.proposals.append(Proposal(name, now, isr, epochs))

    @precondition(lambda self: self.proposals)
    @rule(choice=st.sampled_from([-1, 0]))
    def hear(self, choice: int) -> None:
        """Deliver a proposal once; it is accepted only if nothing has changed."""
        sent = self.proposals.pop(choice)
        now = self.partition(sent.name)
        try:
            answer = self.talk.alter(
                sent.members,
                name=sent.name,
                seen=sent.seen,
                sender_epoch=sent.epochs[sent.seen.leader],
                member_epochs=sent.epochs,
            )
        except ApiError as error:
            if error.code is not ErrorCode.STALE_BROKER_EPOCH:
                raise
            return
        if answer.error_code in {ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED}:
            assert sent.seen == now
            for node_id in sent.members:
                assert self.talk.image.is_active(node_id)
                assert self.talk.broker(node_id).broker_epoch == sent.epochs[node_id]

    @rule(name=names, node_id=nodes, crash=st.booleans())
    def overtake(self, name: str, node_id: int, crash: bool) -> None:
        """Deliver a proposal after the proposed broker has restarted (KIP-903)."""
        self.propose(name, set(NODES))
        if crash:
            self.restart(node_id, clean=False, let_in=True)
        else:
            self.fence(node_id)
            self.produce()
            self.heartbeat(node_id, caught_up=True)
        if self.proposals:
            self.hear(-1)

    # Operators

    @rule(name=names, wish=st.permutations(NODES), count=st.integers(1, 4))
    def reassign(self, name: str, wish: Sequence[int], count: int) -> None:
        self.talk.reassign(wish[:count], name=name)

    @rule(name=names)
    def cancel(self, name: str) -> None:
        before = self.partition(name)
        if self.talk.reassign(None, name=name).error_code == ErrorCode.NONE:
            kept = [n for n in before.replicas if n not in before.adding]
            assert self.partition(name).replicas == kept

    @rule(name=names, minimum=st.integers(1, 3))
    def configure(self, name: str, minimum: int) -> None:
        self.talk.configure(name, min_insync_replicas=str(minimum))

    @rule(limit=st.integers(1, 4))
    def prefer(self, limit: int) -> None:
        image, defaults = self.talk.image, self.talk.defaults
        records = elections.prefer_first_replicas(image, defaults, limit)
        self.talk.commit(records)
        for record in records:
            assert record.leader == record.replicas[0]

    @rule(name=names)
    def elect_uncleanly(self, name: str) -> None:
        """Let an operator delete data that only lost brokers have."""
        self.talk.configure(name, unclean_leader_election_enable="true")
        self.talk.configure(name, unclean_leader_election_enable="false")
        now, data = self.partition(name), self.data[name]
        if now.unclean:
            data.acknowledged = min(data.acknowledged, data.held.get(now.leader, 0))
            data.held = {n: min(held, data.acknowledged) for n, held in data.held.items()}

    # Invariants

    @invariant()
    def partitions_are_sound(self) -> None:
        for name in TOPICS:
            now = self.partition(name)
            live = [n for n in now.isr if self.talk.image.is_active(n)]
            able = [n for n in live if n not in now.wiped]
            assert now.isr, "the ISR is never empty"
            assert now.wiped in ([], now.isr)
            for group in (now.replicas, now.isr, now.eligible, now.adding, now.removing):
                assert len(set(group)) == len(group)
                assert set(group) <= set(now.replicas)
            assert not set(now.isr) & set(now.eligible)
            assert not set(now.adding) & set(now.removing)
            assert now.removing != now.replicas
            assert now.leader in able or (now.leader == -1 and not able)
            assert live == now.isr or len(now.isr) == 1
            assert not now.eligible or not rules_of(
                self.talk.image.topics[name], self.talk.defaults
            ).has_enough_in_sync(now)

    @invariant()
    def replicas_that_may_lead_have_everything(self) -> None:
        for name, data in self.data.items():
            now = self.partition(name)
            for node_id in (*(n for n in now.isr if n not in now.wiped), *now.eligible):
                assert data.held.get(node_id, 0) == data.acknowledged, (name, node_id)

    @invariant()
    def epochs_only_grow(self) -> None:
        image, before = self.talk.image, self.before
        assert image.last_broker_epoch >= before.last_broker_epoch
        for node_id, broker in image.brokers.items():
            known = before.brokers.get(node_id)
            assert known is None or broker.broker_epoch >= known.broker_epoch
        for name in TOPICS:
            old, new = before.topics[name].partitions[0], self.partition(name)
            assert new.leader_epoch >= old.leader_epoch
            assert (new.partition_epoch > old.partition_epoch) == (new != old)
            if new.leader != old.leader:
                assert new.leader_epoch > old.leader_epoch
        self.before = image.fork()

    def _flushes(self, name: str) -> bool:
        return rules_of(self.talk.image.topics[name], self.talk.defaults).flush_on_ack

    def _lose(self, node_id: int, lost: Sequence[str]) -> None:
        """Delete the records of a broker."""
        for name in lost:
            self.data[name].held.pop(node_id, None)

    def _accept_loss(self, node_id: int) -> None:
        """Accept the loss of records that only the last in-sync replica had."""
        for name, data in self.data.items():
            now = self.partition(name)
            if now.isr == [node_id] and not now.wiped:
                data.acknowledged = min(data.acknowledged, data.held.get(node_id, 0))
                data.held = {n: min(held, data.acknowledged) for n, held in data.held.items()}


LIMITS = settings(
    max_examples=examples(100),
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


ALL_EXAMPLES = settings(LIMITS, max_examples=300, phases=[Phase.generate])
"""A missing rule fails only for some examples."""


def test_nothing_is_lost() -> None:
    run_state_machine_as_test(Controller, settings=LIMITS)


def _any_process(image: Image, _: PartitionImage, member: BrokerState) -> bool:
    return isr_decisions.is_available(image, member.broker_id)


def _no_records(*_: object) -> list[MetadataRecord]:
    return []


@pytest.mark.parametrize(
    ("module", "rule_name", "without"),
    [
        (isr_decisions, "knows_this_partition", lambda partition, epoch: None),
        (isr_decisions, "is_available", lambda image, node_id: True),
        (isr_decisions, "may_be_in_sync", _any_process),
        (brokers, "has_all_acknowledged", lambda known, request, rules: True),
        (elections, "configs_changed", _no_records),
    ],
)
def test_without_a_rule_it_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, rule_name: str, without: object
) -> None:
    """The epochs of leader and sender are not among these rules. With the others in force, each
    change that they would detect also changes the partition epoch. They are a second line of
    defence.
    """
    monkeypatch.setattr(module, rule_name, without)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Controller, settings=ALL_EXAMPLES)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(
    partitions=st.integers(1, 40),
    copies=st.integers(1, 6),
    brokers_there=st.integers(1, 9),
    start=st.integers(0, 20),
)
def test_placement_is_even(partitions: int, copies: int, brokers_there: int, start: int) -> None:
    copies = min(copies, brokers_there)
    placed = placement.spread(partitions, copies, range(brokers_there), {}, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == copies for replicas in placed)
    _assert_even([n for replicas in placed for n in replicas], brokers_there)
    _assert_even([replicas[0] for replicas in placed], brokers_there)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(
    partitions=st.integers(1, 30),
    copies=st.integers(1, 5),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    start=st.integers(0, 20),
)
def test_placement_is_spread_over_racks(
    partitions: int, copies: int, sizes: list[int], start: int
) -> None:
    homes = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    racks = {node_id: str(rack) for node_id, rack in enumerate(homes)}
    copies = min(copies, len(racks))
    circle = placement.circle_of(racks, racks)
    placed = placement.spread(partitions, copies, circle, racks, start)
    for replicas in placed:
        assert len(set(replicas)) == copies
        assert len({racks[n] for n in replicas}) == min(copies, len(sizes))
    _assert_even([replicas[0] for replicas in placed], len(racks))
    if len(set(sizes)) == 1 and copies <= len(sizes):
        _assert_even([n for replicas in placed for n in replicas], len(racks))


def _assert_even(nodes_chosen: Sequence[int], count: int) -> None:
    held = Counter(nodes_chosen)
    shares = [held[node_id] for node_id in range(count)]
    assert max(shares) - min(shares) <= 1
