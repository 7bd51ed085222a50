"""Draws from the seed which clients take part in a run."""

from enum import Enum
from random import Random
from typing import TypeVar

from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.final_checks import AuditLookUp
from barnabas.sim.checks.ledger import Ledger
from barnabas.sim.checks.monotonic_checks import MonotonicChecks
from barnabas.sim.checks.ownership_checks import Ownership
from barnabas.sim.clients.actor import Actor
from barnabas.sim.clients.committers import Admin, Committer
from barnabas.sim.clients.idempotent_producer import IdempotentProducer
from barnabas.sim.clients.reader import Reader
from barnabas.sim.clients.share_operators import RecordDeleter, ShareFounder
from barnabas.sim.clients.simulated_classic_member import ClassicMember
from barnabas.sim.clients.simulated_consumer_member import ConsumerMember
from barnabas.sim.clients.simulated_share_member import ShareConsumer
from barnabas.sim.clients.transactional_producer import TransactionalProducer
from barnabas.sim.clients.transformer import Transformer
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import QUEUE, QUEUE_PARTITIONS, ShareGroup, ShareGroups
from barnabas.sim.world import World

A = TypeVar("A", bound=Actor)

DATA, SHARED, INPUT = "data", "shared", "input"
TOPICS = {DATA: 2, SHARED: 4, INPUT: 2}
CLASSIC, CONSUMER, PLAIN, SHORT, FLOW = "classic", "consumer", "plain", "short", "flow"


class Theme(Enum):
    """The topic of a run: a bug in one part shows more often if there is little else."""

    LOG = "log"
    """Producers without groups or transactions: a test of replication and leadership."""

    MIXED = "mixed"
    GROUPS = "groups"
    FLOW = "flow"
    TRANSACTIONS = "transactions"
    SECURITY = "security"
    """Clients with few rights, which an operator takes away and gives back."""
    SHARES = "shares"
    """Members of share groups, and the producers of what they read."""


class Scenario:
    """The clients of a run, and their shared records."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.cluster = cluster
        self.rng: Random = world.rng
        self.ledger = Ledger()
        self.monotonic = MonotonicChecks()
        self.ownership = Ownership(world)
        self.actors: list[Actor] = []
        self.zombies: list[TransactionalProducer] = []
        self.data = [TopicPartition(DATA, n) for n in range(TOPICS[DATA])]
        self.shared = [TopicPartition(SHARED, n) for n in range(TOPICS[SHARED])]
        self.input = [TopicPartition(INPUT, n) for n in range(TOPICS[INPUT])]
        self.topic_ids: dict[bytes, str] = {}
        self.shares: ShareGroups | None = None
        """The share groups of the run, if it has any."""
        self.queue_ledger = Ledger()
        """What was written to the topic that only share groups read; its records are deleted."""

    def populate(self, theme: Theme) -> None:
        """Draw the clients of a run."""
        if theme is Theme.LOG:
            self.input = []
            self._add_writers(self.rng.choice((2, 3, 4)))
            return
        if theme is Theme.SECURITY:
            self._add_clients_with_rights()
        elif theme is Theme.SHARES:
            self.input = []
            self._add_writers(2)
            for number in range(self.rng.choice((0, 1))):
                self._add_transactional(f"t{number}", f"t{number}", new=self.rng.random() < 0.6)
        else:
            self._add_mixture(theme)
        if self.shares is not None:
            self._add_shares(self.shares)

    def _add_mixture(self, theme: Theme) -> None:
        rng, mixed = self.rng, theme is Theme.MIXED
        transactional = {Theme.MIXED: (0, 1, 2), Theme.TRANSACTIONS: (2, 3)}.get(theme, (0,))
        for number in range(rng.choice((0, 1, 2)) if mixed else 0):
            partition = rng.choice(self.data)
            self._add(
                IdempotentProducer(self.world, self.cluster, f"p{number}", self.ledger, partition)
            )
        for number in range(rng.choice(transactional)):
            self._add_transactional(f"t{number}", f"t{number}", new=rng.random() < 0.6)
        if theme is not Theme.GROUPS:
            self._add_readers()
        if theme is Theme.GROUPS or (mixed and rng.random() < 0.4):
            self._add_classic(rng.choice((2, 3)))
        if theme is Theme.GROUPS or (mixed and rng.random() < 0.4):
            self._add_consumers(rng.choice((2, 3)))
        if theme is Theme.FLOW or (mixed and rng.random() < 0.3):
            self._add_flow(rng.choice((2, 3)))
        for number in range(rng.choice((0, 1, 2))):
            self._add_committer(f"o{number}")
        if rng.random() < 0.3:
            admin = self._add(Admin(self.world, self.cluster, "admin", SHORT, self.ledger))
            admin.partitions = self.shared

    def _add_clients_with_rights(self) -> None:
        self.input = []
        self._add_writers(self.rng.choice((2, 3)))
        if not self.readers:
            self._add_readers()
        for number in range(self.rng.choice((1, 2))):
            self._add_committer(f"o{number}")

    def _add_shares(self, shares: ShareGroups) -> None:
        """Add the members of share groups, and what writes to and deletes from their own topic."""
        self._add(ShareFounder(self.world, self.cluster, "founder-s", shares))
        for group in shares.groups.values():
            for number in range(shares.rng.choice((2, 3))):
                self.add_share_consumer(f"{group.group_id}m{number}", shares, group)
        if any(group.topic == QUEUE for group in shares.groups.values()):
            for number in range(QUEUE_PARTITIONS):
                partition = TopicPartition(QUEUE, number)
                ledger = self.queue_ledger
                writer = IdempotentProducer(
                    self.world, self.cluster, f"q{number}", ledger, partition
                )
                self._add(writer)
            if shares.rng.random() < 0.6:
                self._add(RecordDeleter(self.world, self.cluster, "deleter"))

    def add_share_consumer(
        self, name: str, shares: ShareGroups, group: ShareGroup
    ) -> ShareConsumer:
        """Add a member of a share group."""
        member = ShareConsumer(self.world, self.cluster, name, shares, group)
        member.ledgers = (self.ledger, self.queue_ledger)
        return self._add(member)

    def _add_writers(self, count: int) -> None:
        for number in range(count):
            writer = IdempotentProducer(
                self.world,
                self.cluster,
                f"p{number}",
                self.ledger,
                self.data[number % len(self.data)],
            )
            writer.gap_ms = self.rng.choice((60, 200))
            self._add(writer)
        if self.rng.random() < 0.5:
            self._add_readers()

    @property
    def stored(self) -> list[TopicPartition]:
        """All partitions that clients write records to."""
        return self.data + self.input

    @property
    def readers(self) -> list[Reader]:
        """The clients that read partitions."""
        return self.of(Reader)

    def of(self, kind: type[A]) -> list[A]:
        """Return the clients of a kind."""
        return [actor for actor in self.actors if isinstance(actor, kind)]

    def raise_zombie(self) -> None:
        """Start a second instance of a producer while the first still runs."""
        producers = [p for p in self.of(TransactionalProducer) if p not in self.zombies]
        if not producers:
            return
        original = self.rng.choice(producers)
        name = f"{original.name}z{len(self.zombies)}"
        self.world.note(name, f"replaces {original.name}")
        zombie = self._add_transactional(name, original.transactional_id, new=original.new)
        self.zombies.append(zombie)
        zombie.start()

        def stop() -> None:
            zombie.closing = True

        self.world.after(self.rng.randint(200, 3_000), stop)

    def look_ups(self) -> list[AuditLookUp]:
        """Return clients that fetch every committed offset."""
        found = []
        for group, partitions in (
            (CLASSIC, self.shared),
            (CONSUMER, self.shared),
            (PLAIN, self.shared + self.data),
            (FLOW, self.input),
        ):
            look_up = AuditLookUp(self.world, self.cluster, f"audit-{group}", group, self.ledger)
            look_up.partitions = partitions
            if any(write.group == group for write in self.ledger.writes.values()):
                found.append(look_up)
        return found

    def _add(self, actor: A) -> A:
        self.actors.append(actor)
        return actor

    def _add_transactional(
        self, name: str, transactional_id: str, *, new: bool
    ) -> TransactionalProducer:
        return self._add(
            TransactionalProducer(
                self.world,
                self.cluster,
                name,
                self.ledger,
                self.data,
                transactional_id=transactional_id,
                new=new,
                group=self.rng.choice((None, PLAIN)),
            )
        )

    def _add_readers(self) -> None:
        for partition in self.data:
            for committed in (True, False):
                if committed or self.rng.random() < 0.4:
                    name = f"r{partition.partition}{'c' if committed else 'u'}"
                    self._add(
                        Reader(
                            self.world,
                            self.cluster,
                            name,
                            self.ledger,
                            self.monotonic,
                            partition,
                            committed=committed,
                        )
                    )

    def _add_classic(self, count: int) -> None:
        for number in range(count):
            self._add_member(f"c{number}", CLASSIC, self.shared)

    def _add_member(self, name: str, group: str, partitions: list[TopicPartition]) -> ClassicMember:
        instance = f"static-{name}" if self.rng.random() < 0.3 else None
        member = ClassicMember(
            self.world,
            self.cluster,
            name,
            group,
            self.ledger,
            self.ownership,
            self.monotonic,
            instance=instance,
        )
        member.partitions = partitions
        member.leave_chance = self.rng.choice((0.0, 0.0, 0.15))
        return self._add(member)

    def _add_flow(self, count: int) -> None:
        """Add the producers of the input, and the applications that transform it."""
        for partition in self.input:
            name = f"i{partition.partition}"
            self._add(IdempotentProducer(self.world, self.cluster, name, self.ledger, partition))
        for number in range(count):
            transformer = Transformer(
                self.world,
                self.cluster,
                f"f{number}",
                self.ledger,
                self.data,
                transactional_id=f"f{number}",
                new=self.rng.random() < 0.7,
                group=FLOW,
            )
            transformer.member = self._add_member(f"fm{number}", FLOW, self.input)
            transformer.member.commits = False
            transformer.routes = (
                transformer.member.routes
            )  # the transactional producer and its member are one process
            self._add(transformer)

    def _add_consumers(self, count: int) -> None:
        for number in range(count):
            name = f"k{number}"
            instance = f"static-{name}" if self.rng.random() < 0.3 else None
            member = ConsumerMember(
                self.world,
                self.cluster,
                name,
                CONSUMER,
                self.ledger,
                self.ownership,
                self.monotonic,
                instance=instance,
            )
            member.topic, member.topic_ids = SHARED, self.topic_ids
            self._add(member)

    def _add_committer(self, name: str) -> None:
        committer = Committer(self.world, self.cluster, name, PLAIN, self.ledger)
        committer.partitions = self.data
        self._add(committer)
