"""Runs one seed with a cluster: brokers, clients and faults, until everything has settled.

    result = run_cluster(seed)
    assert result.problem is None

It checks what a run with a single broker checks (`sim/run.py`), and more. After every event it
compares leaders, epochs, watermarks and committed records of all replicas. At the end every
replica is in sync and has the same records, and every topic has its replication factor, whichever
brokers were up when it was created.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

from barnabas.metadata.features import FIRST_LEVEL, LATEST_LEVEL
from barnabas.model.callers import Principal
from barnabas.model.ids import TopicId
from barnabas.model.permissions import Operation, PatternType, ResourceType
from barnabas.node.partitions.partition import Partition
from barnabas.sim.checks.proposal_checks import check_request
from barnabas.sim.checks.quorum_checks import Quorum
from barnabas.sim.checks.replica_checks import ReplicaChecks
from barnabas.sim.checks.rights_checks import (
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    Question,
    Rights,
    differences,
)
from barnabas.sim.checks.settled_checks import SettledCheck, all_in_sync, check_factors
from barnabas.sim.clients.actor import Actor
from barnabas.sim.clients.committers import Committer
from barnabas.sim.clients.idempotent_producer import IdempotentProducer
from barnabas.sim.clients.operators import AutoTopicCreator, Operator, TopicCreator, UncheckedWriter
from barnabas.sim.clients.reader import Reader
from barnabas.sim.clients.security_operators import (
    INTRUDER,
    LIMITED,
    OPERATOR,
    Grant,
    Intruder,
    SecurityOperator,
)
from barnabas.sim.faults.cluster_fault_rates import ClusterFaults
from barnabas.sim.faults.cluster_fault_schedule import ClusterFaultSchedule
from barnabas.sim.faults.fault_schedule import FaultSchedule
from barnabas.sim.run import END_MS, SMALL_SEGMENT_BYTES, Result, Run, played
from barnabas.sim.scenario import DATA, PLAIN, SHARED, TOPICS, Theme
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError

SKEW_MS_MAX = 300_000
BOOT_MS = 60_000
OPERATOR_CHANCE = 0.5
"""The fraction of runs with an operator who moves partitions."""
ON_DEMAND_CHANCE = 0.25
"""The fraction of runs with topics that are created while brokers are down."""
SECURITY_CHANCE = 0.15
"""The fraction of runs whose clients have rights, in place of the theme that they would have."""
WRITERS = "writers"
"""A role."""


class ClusterRun(Run):
    """A world with several brokers."""

    faults_ms = (6_000, 14_000)
    themes = (Theme.LOG, Theme.LOG, *Run.themes)

    def __init__(
        self,
        seed: int,
        *,
        theme: Theme | None = None,
        faults: ClusterFaults | None = None,
        keep_trace: bool = False,
    ) -> None:
        super().__init__(seed, theme=theme, keep_trace=keep_trace)
        drawn = ClusterFaults.swarm(self.world.rng)
        self.cluster_faults = faults or drawn.survivable
        self.replica_checks = ReplicaChecks()
        self.quorum = Quorum()
        self.rights = Rights()

    def _theme_of(self, seed: int, drawn: Theme) -> Theme:
        """Draw with a generator of its own, so that other seeds keep their meaning."""
        is_secure = Random(f"{seed} security").random() < SECURITY_CHANCE
        return Theme.SECURITY if is_secure else super()._theme_of(seed, drawn)

    def _make_cluster(self) -> Cluster:
        operator = OPERATOR if self.theme is Theme.SECURITY else None
        return Cluster.of(self.world, self.world.rng.choice((3, 3, 3, 5)), operator)

    def _watch(self) -> None:
        for host in self.cluster.hosts:
            host.invariants.append(partial(self.quorum.check, host))
            host.invariants.append(partial(self.replica_checks.check, host))
            host.check_request = check_request
            if self.theme is Theme.SECURITY:
                host.invariants.append(partial(self.rights.check, host))
                self.cluster.on_answer = self.rights.check_answer
        self.cluster.on_metadata = self.quorum.check_answer
        self.replica_checks.in_sync = self._in_sync
        self.quorum.on_join = self.replica_checks.check_joined
        self.world.note("world", f"{self.theme} {self.cluster_faults}")

    def _in_sync(self, topic_id: TopicId, number: int) -> Iterator[tuple[int, Partition]]:
        """Yield the in-sync replicas of registered processes that run."""
        for broker, broker_epoch in self.quorum.in_sync(topic_id, number):
            host = self.cluster.by_id[broker]
            node = host.node
            if node is None or host.damaged or node.membership.broker_epoch != broker_epoch:
                continue
            replica = node.by_topic_id.get(topic_id, {}).get(number)
            if replica is not None:
                yield broker, replica

    def _boot(self) -> None:
        rng = self.world.rng
        for host in self.cluster.hosts:
            # Half of the worlds start with the metadata of the first release, and may be upgraded.
            is_old = self.world.seed % 2 and self.theme is not Theme.SECURITY
            host.first_level = FIRST_LEVEL if is_old else LATEST_LEVEL
            host.skew_ms = rng.choice((0, rng.randint(-SKEW_MS_MAX, SKEW_MS_MAX)))
            self.world.after(rng.randint(0, 500), host.start)
        founder = TopicCreator(self.world, self.cluster, "founder")
        has_groups = self.theme not in (Theme.LOG, Theme.SECURITY)
        founder.topics = self._topics(TOPICS if has_groups else {DATA: TOPICS[DATA]})
        founder.config = dict(rng.choice(({}, {"segment.bytes": SMALL_SEGMENT_BYTES})))
        if not self.cluster_faults.flush_on_ack:
            founder.config["flush"] = "interval"
        founder.topic_ids = {}
        self.world.after(0, founder.start)
        self.world.run_until(lambda: founder.done, BOOT_MS, "the topics exist")
        shared = [key for key, name in founder.topic_ids.items() if name == SHARED]
        self.scenario.topic_ids.update(dict.fromkeys(shared, SHARED))

    def _populate(self) -> None:
        super()._populate()
        for reader in self.scenario.readers:
            reader.routes.reads_from_followers = self.world.rng.random() < 0.3
        if self.world.rng.random() < OPERATOR_CHANCE:
            operator = Operator(self.world, self.cluster, "operator")
            operator.partitions = self.scenario.data
            self.scenario.actors.append(operator)
            scribbler = UncheckedWriter(self.world, self.cluster, "scribbler")
            scribbler.operator = operator
            self.scenario.actors.append(scribbler)

        if (
            Random(self.world.seed).random() < ON_DEMAND_CHANCE
        ):  # a generator of its own keeps the other draws unchanged
            self.scenario.actors.append(AutoTopicCreator(self.world, self.cluster, "demand"))
        if self.theme is Theme.SECURITY:
            self._add_security()

    def _add_security(self) -> None:
        """Give each client a name and few rights, and add the operator that changes them."""
        operator = SecurityOperator(self.world, self.cluster, "security")
        scenario, grants, roles = self.scenario, list[Grant](), list[tuple[str, str]]()
        for number, writer in enumerate(scenario.of(IdempotentProducer)):
            name = str(_named(writer))
            if number % 2:
                roles.append((WRITERS, name))
            else:
                grants.append(Grant(name, Operation.WRITE, ResourceType.TOPIC, DATA))
        role = Grant(f"Role:{WRITERS}", Operation.WRITE, ResourceType.TOPIC, DATA[:2])
        grants.append(role._replace(pattern=PatternType.PREFIXED))
        for reader in scenario.of(Reader):
            grants.append(Grant(str(_named(reader)), Operation.READ, ResourceType.TOPIC, DATA))
        for committer in scenario.of(Committer):
            name = str(_named(committer))
            grants.append(Grant(name, Operation.READ, ResourceType.TOPIC, "*"))
            grants.append(Grant(name, Operation.READ, ResourceType.GROUP, PLAIN))
        operator.grants, operator.members = grants, roles
        operator.limited = [each.name for each in scenario.of(IdempotentProducer)]
        intruder = Intruder(self.world, self.cluster, "intruder")
        intruder.principal = INTRUDER
        self._ask_about(operator.limited)
        scenario.actors += [operator, intruder]

    def _ask_about(self, limited: Sequence[str]) -> None:
        """Have the checks ask about everything that clients do."""
        rights, scenario = self.rights, self.scenario
        rights.limited = [LIMITED, *limited]
        for actor, wanted, name in (
            *((each, WRITE_TOPIC, DATA) for each in scenario.of(IdempotentProducer)),
            *((each, READ_TOPIC, DATA) for each in scenario.of(Reader)),
            *((each, READ_TOPIC, DATA) for each in scenario.of(Committer)),
            *((each, READ_GROUP, PLAIN) for each in scenario.of(Committer)),
        ):
            assert actor.principal is not None
            rights.questions.append(Question(actor.principal, wanted, name))
        rights.questions.append(Question(INTRUDER, WRITE_TOPIC, DATA))

    def _fault_schedule(self) -> FaultSchedule:
        return ClusterFaultSchedule(self.world, self.scenario, self.cluster_faults, self.quorum)

    def _is_settled(self, settled: SettledCheck) -> bool:
        return all_in_sync(self.cluster) and settled()

    def _is_idle(self) -> bool:
        return all_in_sync(self.cluster) and super()._is_idle()

    def _audit(self) -> None:
        super()._audit()
        # Members whose sessions ended meanwhile may have caused writes.
        self.world.run_until(
            self._is_idle, self.world.now_ms + END_MS, "no request or transaction is open again"
        )
        self.replica_checks.compare_all(self.cluster)
        check_factors(self.cluster)
        self._compare_levels()
        if self.theme is Theme.SECURITY:
            self._compare_security()

    def _compare_security(self) -> None:
        """Check that all brokers have the same users, rights and quotas, with all changes."""
        deadline_ms, found = self.world.now_ms + END_MS, ["no broker was asked"]

        def agree() -> bool:
            found[:] = differences(self.cluster.nodes)
            return not found

        try:
            self.world.run_until(agree, deadline_ms, "all brokers have the same rights")
        except InvariantError as error:
            raise InvariantError(f"{error}: {found}") from None
        for operator in self.scenario.of(SecurityOperator):
            operator.check(self.cluster.nodes[0].image.security)

    def _compare_levels(self) -> None:
        """Check that all brokers reach one feature level, not below what an operator was told.

        A broker whose last metadata fetch was lost retries seconds later.
        """
        deadline_ms = self.world.now_ms + END_MS
        self.world.run_until(
            lambda: len(self._levels()) == 1, deadline_ms, "all brokers have one feature level"
        )
        levels = self._levels()
        told = [each.level for each in self.scenario.actors if isinstance(each, Operator)]
        if max(told, default=0) > max(levels):
            raise InvariantError(f"brokers are at levels {levels}, but operators saw {told}")

    def _levels(self) -> set[int]:
        return {node.image.feature_level for node in self.cluster.nodes}


def _named(actor: Actor) -> Principal:
    """Give a client a principal of its own."""
    actor.principal = Principal("User", actor.name)
    return actor.principal


def run_cluster(
    seed: int,
    *,
    theme: Theme | None = None,
    faults: ClusterFaults | None = None,
    keep_trace: bool = False,
) -> Result:
    """Run one seed with several brokers; the seed draws theme and faults unless they are given."""
    return played(ClusterRun(seed, theme=theme, faults=faults, keep_trace=keep_trace))
