"""Tests three replicas under random events: acknowledged records stay, committed prefixes agree.

For any lost messages, leaders and power cuts: with `flush=ack`, a record that was acknowledged to
acks=all is in the log of every later leader.
"""

from collections.abc import Callable
from random import Random

import pytest

from barnabas.model.errors import ApiError
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.records import records
from barnabas.storage.trimming import drop_segments
from tests.support.raft.replica_set import ReplicaSet, SimulatedBroker
from tests.support.talk.batches import make_batch, read_all

SEEDS = 60
STEPS = 600


class Story:
    """A run drawn from a seed, and its acknowledged records."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        config = {"segment.bytes": "1024"}
        if self.rng.random() < 0.2:
            config["min.insync.replicas"] = "1"
        self.loses_power = self.rng.random() < 0.8
        if not self.loses_power:
            config["flush"] = "interval"
        self.set = ReplicaSet(config)
        self.sent = 0
        self.acknowledged: dict[bytes, int] = {}
        self.committed: dict[int, bytes] = {}

    def step(self) -> None:
        """Run one random event."""
        happens: list[Callable[[], None]] = [
            *[self.append] * 2,
            *[self.deliver] * 10,
            *[self.sync] * 4,
            *[self.hear] * 2,
            self.alter,
            self.wait,
            self.delete,
        ]
        if self.rng.random() < 0.05:
            happens = [self.lose, self.kill, self.restart, self.restart, self.move]
        self.rng.choice(happens)()
        self.check()

    def append(self) -> None:
        # To every broker that considers itself the leader: a client may not know better either.
        leading = [s for s in self.set.stands.values() if s.alive and s.partition.leads]
        if leading:
            stand = self.rng.choice(leading)
            stand.do(lambda: self._append(stand.partition))

    def _append(self, partition: Partition) -> None:
        self.sent += 1
        content = f"record {self.sent}".encode()
        try:
            partition.leader.check_min_isr()
            appended = partition.leader.append(make_batch([(b"k", content)]), 1_000)
        except ApiError:
            return

        def acknowledge() -> None:
            self.acknowledged[content] = appended.base_offset

        partition.when_safe(appended.required_offset, acknowledge)

    def deliver(self) -> None:
        if self.set.flying:
            self.set.deliver(self.rng.choice(self.set.flying))

    def sync(self) -> None:
        busy = [s for s in self.set.stands.values() if s.alive and s.held]
        if busy:
            self.rng.choice(busy).finish_sync()

    def hear(self) -> None:
        behind = [s for s in self.set.stands.values() if s.alive and s.placements]
        if behind:
            self.rng.choice(behind).apply_next_decision()

    def alter(self) -> None:
        if self.set.proposals:
            self.set.alter(lose_answer=self.rng.random() < 0.3)

    def wait(self) -> None:
        self.set.pass_time(self.rng.choice((1, 10, 100, 100, 700)))

    def lose(self) -> None:
        if self.set.flying:
            self.set.lose(self.rng.choice(self.set.flying))

    def kill(self) -> None:
        number = self.rng.choice((1, 2, 3))
        if self.set.stands[number].alive:
            self.set.stop(number, self.rng if self.loses_power else None)

    def restart(self) -> None:
        down = [number for number, stand in self.set.stands.items() if not stand.alive]
        if down:
            self.set.start(self.rng.choice(down))

    def delete(self) -> None:
        """Let the leader delete old records, so that a follower may be too late for them."""
        leader = self.set.leader
        if leader is not None and self.rng.random() < 0.2:
            partition, log = leader.partition, leader.partition.log
            offset = self.rng.randint(log.start_offset, partition.high_watermark)
            leader.do(lambda: partition.delete_before(offset))
            dropping = drop_segments(log, log.start_offset, [])
            leader.do(lambda: partition.changes.start(dropping, lambda _: None, lambda _: None))

    def move(self) -> None:
        self.set.move(self.rng.choice((1, 2, 3)))

    def check(self) -> None:
        """Compare the acknowledged records with every replica."""
        for stand in self.set.stands.values():
            if stand.alive:
                self._check(stand)

    def _check(self, stand: SimulatedBroker) -> None:
        partition = stand.partition
        high = partition.high_watermark
        assert high >= stand.high_watermark_seen, "a high watermark went back"
        assert high <= partition.log.end_offset
        if high == stand.high_watermark_seen:
            return
        stand.high_watermark_seen = high
        for offset, content in contents(partition, high):
            assert self.committed.setdefault(offset, content) == content, (
                "committed prefixes differ"
            )

    def end(self) -> None:
        """Start all brokers, let them settle, and read everything."""
        for number, stand in self.set.stands.items():
            if not stand.alive:
                self.set.start(number)
        self.set.settle_all(120)
        self.check()
        leader = self.set.leader
        assert leader is not None
        assert sorted(self.set.placed.isr) == [1, 2, 3], "a replica did not catch up"
        end = leader.partition.log.end_offset
        expected = contents(leader.partition, end)
        for stand in self.set.stands.values():
            assert stand.partition.high_watermark == end
            start = stand.partition.log.start_offset
            assert contents(stand.partition, end) == [each for each in expected if each[0] >= start]
        stored = {content: offset for offset, content in expected}
        for content, offset in self.acknowledged.items():
            if offset >= leader.partition.log.start_offset:
                assert stored.get(content) == offset, f"{content!r} was acknowledged at {offset}"


def contents(partition: Partition, upper: int) -> list[tuple[int, bytes]]:
    return [
        (record.offset, record.value or b"")
        for header, batch in read_all(partition.log)
        for record in records(batch, header)
        if partition.log.start_offset <= record.offset < upper
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_acknowledged_stays_and_copies_agree(seed: int) -> None:
    story = Story(seed)
    for _ in range(STEPS):
        story.step()
    story.end()
