"""One simulated run of a cluster: brokers, clients and faults, until everything has settled.

    result = run_cluster(seed)
    assert result.problem is None

As with a lone broker (`sim/run.py`), and besides: after every event leaders, epochs, watermarks and
committed prefixes of all replicas are compared. At the end every replica is in sync and has the
same records, and every topic has its replication factor, whichever brokers were up when it was
created.
"""

from collections.abc import Iterator
from functools import partial
from random import Random

from barnabas.metadata.features import FIRST_LEVEL, LATEST_LEVEL
from barnabas.model.ids import TopicId
from barnabas.node.partitions.partition import Partition
from barnabas.sim.checks.proposal_checks import judge
from barnabas.sim.checks.quorum_checks import Quorum
from barnabas.sim.checks.replica_checks import ReplicaChecks
from barnabas.sim.checks.settled_checks import SettledCheck, all_in_sync, check_factors
from barnabas.sim.clients.operators import Demand, Founder, Operator, Scribbler
from barnabas.sim.faults.cluster_fault_rates import ClusterFaults
from barnabas.sim.faults.cluster_fault_schedule import ClusterFaultSchedule
from barnabas.sim.faults.fault_schedule import FaultSchedule
from barnabas.sim.run import END_MS, SMALL_SEGMENT_BYTES, Result, Run, played
from barnabas.sim.scenario import DATA, SHARED, TOPICS, Theme
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError

SKEW_MS_MAX = 300_000
BOOT_MS = 60_000
OPERATED = 0.5
"""How many runs have somebody who moves partitions about."""
DEMANDING = 0.25
"""How many runs have topics made on demand, whichever brokers are up."""


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
        self.hardship = faults or drawn.bearable
        self.replica_checks = ReplicaChecks()
        self.quorum = Quorum()

    def _make_cluster(self) -> Cluster:
        return Cluster.of(self.world, self.world.rng.choice((3, 3, 3, 5)))

    def _watch(self) -> None:
        for host in self.cluster.hosts:
            host.invariants.append(partial(self.quorum.check, host))
            host.invariants.append(partial(self.replica_checks.check, host))
            host.judge = judge
        self.cluster.on_metadata = self.quorum.check_answer
        self.replica_checks.in_sync = self._in_sync
        self.quorum.on_join = self.replica_checks.check_joined
        self.world.note("world", f"{self.theme} {self.hardship}")

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
            # Half of the worlds begin as the first release left them, and may be upgraded.
            host.first_level = FIRST_LEVEL if self.world.seed % 2 else LATEST_LEVEL
            host.skew_ms = rng.choice((0, rng.randint(-SKEW_MS_MAX, SKEW_MS_MAX)))
            self.world.after(rng.randint(0, 500), host.start)
        founder = Founder(self.world, self.cluster, "founder")
        founder.topics = {DATA: TOPICS[DATA]} if self.theme is Theme.LOG else TOPICS
        founder.config = dict(rng.choice(({}, {"segment.bytes": SMALL_SEGMENT_BYTES})))
        if not self.hardship.flush_on_ack:
            founder.config["flush"] = "interval"
        founder.topic_ids = {}
        self.world.after(0, founder.start)
        self.world.run_until(lambda: founder.done, BOOT_MS, "topics are made")
        shared = [key for key, name in founder.topic_ids.items() if name == SHARED]
        self.scenario.topic_ids.update(dict.fromkeys(shared, SHARED))

    def _populate(self) -> None:
        super()._populate()
        for reader in self.scenario.readers:
            reader.routes.reads_nearby = self.world.rng.random() < 0.3
        if self.world.rng.random() < OPERATED:
            operator = Operator(self.world, self.cluster, "operator")
            operator.partitions = self.scenario.data
            self.scenario.actors.append(operator)
            scribbler = Scribbler(self.world, self.cluster, "scribbler")
            scribbler.operator = operator
            self.scenario.actors.append(scribbler)

        if Random(self.world.seed).random() < DEMANDING:  # drawn apart: other worlds stay the same
            self.scenario.actors.append(Demand(self.world, self.cluster, "demand"))

    def _fault_schedule(self) -> FaultSchedule:
        return ClusterFaultSchedule(self.world, self.scenario, self.hardship, self.quorum)

    def _is_settled(self, settled: SettledCheck) -> bool:
        return all_in_sync(self.cluster) and settled()

    def _is_at_rest(self) -> bool:
        return all_in_sync(self.cluster) and super()._is_at_rest()

    def _audit(self) -> None:
        super()._audit()
        # Members whose sessions ended meanwhile may have had something written.
        self.world.run_until(self._is_at_rest, self.world.now_ms + END_MS, "all is quiet again")
        self.replica_checks.compare_all(self.cluster)
        check_factors(self.cluster)
        self._compare_levels()

    def _compare_levels(self) -> None:
        """Check that all brokers come to one feature level, and to what an operator was told.

        A broker whose last fetch of metadata was lost asks again seconds later.
        """
        deadline_ms = self.world.now_ms + END_MS
        self.world.run_until(lambda: len(self._levels()) == 1, deadline_ms, "levels are the same")
        levels = self._levels()
        told = [each.level for each in self.scenario.actors if isinstance(each, Operator)]
        if max(told, default=0) > max(levels):
            raise InvariantError(f"brokers are at levels {levels}, operators were told {told}")

    def _levels(self) -> set[int]:
        return {node.image.feature_level for node in self.cluster.nodes}


def run_cluster(
    seed: int,
    *,
    theme: Theme | None = None,
    faults: ClusterFaults | None = None,
    keep_trace: bool = False,
) -> Result:
    """Play one seed with several brokers, with the theme and the faults it draws or with others."""
    return played(ClusterRun(seed, theme=theme, faults=faults, keep_trace=keep_trace))
