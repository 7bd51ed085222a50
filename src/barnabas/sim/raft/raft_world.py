"""Simulates a metadata quorum alone: members, a failing network, power cuts, and an operator.

    play(seed)

runs one seed. Faults happen for a while; then they stop, and all nodes must agree, make progress,
and know everything that was ever committed. The safety checks run after each event
(`raft_host.py`, `raft_committed.py`).

A disk is lost only when the quorum tolerates it: every voter knows the current voter set, and no
other lost disk waits to be replaced.
"""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.model.errors import StorageError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.messages import add_raft_voter, remove_raft_voter
from barnabas.raft.raft_machine import Raft
from barnabas.raft.voters import LISTENER, NO_DIRECTORY, Voter
from barnabas.sim.raft.raft_committed import CommittedHistory
from barnabas.sim.raft.raft_host import RaftHost, address_of
from barnabas.sim.raft.raft_network import RaftNetwork
from barnabas.sim.raft.raft_two_leaders import TwoLeaders
from barnabas.sim.world import InvariantError, World

SETTLE_MS = 20_000


@dataclass(frozen=True, slots=True)
class RaftFaults:
    """The weights of the faults, and the properties of the network."""

    fault_ms: int = 6_000
    every_ms: int = 400
    """A fault happens about this often."""
    restart_ms: int = 300
    """A stopped node is down for about this long."""
    kill: int = 3
    power_cut: int = 4
    cut_all: int = 1
    isolate: int = 3
    split: int = 2
    one_way: int = 2
    heal: int = 4
    wipe: int = 1
    corrupt: int = 1
    resign: int = 1
    members: int = 2
    two_leaders: int = 0
    kill_at_vote: float = 0.01
    """How often a node is killed right after it answered a Vote request."""
    loss: float = 0.02
    repeat: float = 0.02
    late: float = 0.02
    delay_ms: int = 10
    sync_ms: int = 20
    voters: int = 3
    spares: int = 2
    snapshot_after: int = 40


class RaftWorld:
    """The hosts, and the faults that they suffer."""

    def __init__(self, seed: int, faults: RaftFaults, *, keep_trace: bool = False) -> None:
        self.world = World(seed, keep_trace=keep_trace)
        self.faults = faults
        self.history = CommittedHistory()
        self.network = RaftNetwork(self.world)
        self.network.loss, self.network.repeat = faults.loss, faults.repeat
        self.network.late, self.network.delay_ms_max = faults.late, faults.delay_ms
        self._faulty = True
        self._lost: dict[int, bytes] = {}
        """The directory ids of lost disks by node; their voters wait to be replaced."""
        self._proposed = 0
        bootstrap = [
            Voter(NodeId(number), NO_DIRECTORY, address_of(number))
            for number in range(1, faults.voters + 1)
        ]
        for number in range(1, faults.voters + faults.spares + 1):
            host = RaftHost(
                self.world, self.network, self.history, number, bootstrap, faults.snapshot_after
            )
            host.sync_ms_max = faults.sync_ms
            host.on_vote = self._kill_after_vote(host)
            self.network.hosts[number] = host

    @property
    def hosts(self) -> list[RaftHost]:
        """All machines."""
        return list(self.network.hosts.values())

    def play(self) -> None:
        """Run with faults, then without them until all nodes agree."""
        for host in self.hosts:
            host.start()
        self._later(50, self._propose)
        self._later(self.faults.every_ms, self._fault)
        faults_end = self.faults.fault_ms
        self.world.run_until(
            lambda: self.world.now_ms >= faults_end, faults_end + 1_000, "the faults are over"
        )
        self._stop_faults()
        final = b"the end"
        self._say(final)
        limit_ms = self.world.now_ms + SETTLE_MS
        self.world.run_until(
            lambda: self._all_know(final), limit_ms, "all nodes have the last record"
        )

    def active(self) -> RaftHost | None:
        """Return the active leader of the latest epoch, if there is one."""
        found = [host for host in self.hosts if host.is_active]
        return max(found, key=lambda host: _raft(host).elections.epoch, default=None)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.after(self.world.rng.randint(1, 2 * delay_ms), action)

    def _propose(self) -> None:
        """Propose records at any node that is the active leader as far as it knows."""
        leaders = [host for host in self.hosts if host.is_active]
        if leaders:
            host = self.world.rng.choice(leaders)
            host.run_event(host.life, lambda: self._propose_at(host))
        if self._faulty:
            self._later(50, self._propose)

    def _propose_at(self, host: RaftHost) -> None:
        rng = self.world.rng
        pairs = []
        for _ in range(rng.randint(1, 3)):
            self._proposed += 1
            pairs.append((b"%d" % rng.randrange(20), b"%d" % self._proposed))
        _raft(host).propose(pairs, self.world.now_ms)

    def _say(self, final: bytes) -> None:
        """Propose the last record until every node has it."""
        host = self.active()
        if host is not None:
            host.run_event(host.life, lambda: _raft(host).propose([(b"final", final)], 0))
        if not self._all_know(final):
            self.world.after(500, lambda: self._say(final))

    def _all_know(self, final: bytes) -> bool:
        return all(
            host.raft is not None
            and host.listener.values.get(b"final") == final
            and host.listener.end_offset == self.history.end_offset
            for host in self.hosts
        )

    def _fault(self) -> None:
        if not self._faulty:
            return
        faults = self.faults
        kinds = (
            ("kill", faults.kill),
            ("power_cut", faults.power_cut),
            ("cut_all", faults.cut_all),
            ("isolate", faults.isolate),
            ("split", faults.split),
            ("one_way", faults.one_way),
            ("heal", faults.heal),
            ("wipe", faults.wipe),
            ("corrupt", faults.corrupt),
            ("resign", faults.resign),
            ("members", faults.members),
            ("two_leaders", faults.two_leaders),
        )
        names, weights = zip(*kinds, strict=True)
        kind = self.world.rng.choices(names, weights)[0]
        getattr(self, f"_do_{kind}")()
        self._later(faults.every_ms, self._fault)

    def _any_host(self) -> RaftHost:
        """Draw a host; leaders are drawn more often than others."""
        leading = [host for host in self.hosts if host.leads]
        if leading and self.world.rng.random() < 0.5:
            return self.world.rng.choice(leading)
        return self.world.rng.choice(self.hosts)

    def _do_kill(self) -> None:
        self._stop(self._any_host(), power_cut=False)

    def _do_power_cut(self) -> None:
        self._stop(self._any_host(), power_cut=True)

    def _do_cut_all(self) -> None:
        for host in self.hosts:
            self._stop(host, power_cut=True)

    def _stop(self, host: RaftHost, *, power_cut: bool) -> None:
        if host.raft is None:
            return
        host.kill(power_cut=power_cut)
        self._later(self.faults.restart_ms, lambda: self._start(host))

    def _kill_after_vote(self, host: RaftHost) -> Callable[[], None]:
        def voted() -> None:
            if self._faulty and self.world.rng.random() < self.faults.kill_at_vote:
                self.world.after(0, lambda: self._stop(host, power_cut=True))

        return voted

    def _start(self, host: RaftHost) -> None:
        if host.raft is not None:
            return
        try:
            host.start()
        except StorageError as error:
            raise InvariantError(f"node {host.node_id} refuses to start: {error}") from error

    def _do_isolate(self) -> None:
        host = self._any_host()
        self.world.note("network", f"isolates {host.node_id}")
        for other in self.network.hosts:
            self._cut(host.node_id, other)

    def _do_split(self) -> None:
        here = [number for number in self.network.hosts if self.world.rng.random() < 0.5]
        self.world.note("network", f"splits {here} off")
        for one in here:
            for other in self.network.hosts:
                if other not in here:
                    self._cut(one, other)

    def _do_one_way(self) -> None:
        one, other = self._any_host().node_id, self._any_host().node_id
        self.world.note("network", f"cuts the link from {one} to {other}")
        self.network.cuts[one, other] = None

    def _cut(self, one: int, other: int) -> None:
        self.network.cuts[one, other] = self.network.cuts[other, one] = None

    def _do_heal(self) -> None:
        self.world.note("network", "restores all links")
        self.network.cuts.clear()

    def _do_resign(self) -> None:
        host = self._any_host()
        if host.raft is not None:
            host.run_event(host.life, host.raft.resign)

    def _do_wipe(self) -> None:
        host = self._any_host()
        if self._tolerates_lost_disk(host):
            self._lose_disk(host)

    def _do_corrupt(self) -> None:
        """Damage a snapshot: the node must refuse to start on it, and gets an empty disk."""
        host = self._any_host()
        if not self._tolerates_lost_disk(host):
            return
        directory = _raft(host).identity.directory
        host.kill(power_cut=False)
        if not host.damage_snapshot():
            self._start(host)
            return
        try:
            host.start()
        except StorageError:
            self._replace_disk(host, directory)
        else:
            raise InvariantError(f"node {host.node_id} starts on a damaged snapshot")

    def _tolerates_lost_disk(self, host: RaftHost) -> bool:
        """Whether every node knows the voter set, and every other voter has its disk."""
        rafts = [host.raft for host in self.hosts if host.raft is not None]
        if host.raft is None or len(rafts) < len(self.hosts) or self._lost:
            return False
        sets = [raft.voters for raft in rafts]
        settled = all(raft.log.history.offset < raft.high_watermark for raft in rafts)
        same = all(voters == sets[0] and voters.directories_known for voters in sets)
        return settled and same and len(sets[0]) > 2

    def _lose_disk(self, host: RaftHost) -> None:
        directory = _raft(host).identity.directory
        host.kill(power_cut=False)
        self._replace_disk(host, directory)

    def _replace_disk(self, host: RaftHost, directory: bytes) -> None:
        if self._knows_as_voter(host.node_id, directory):
            self._lost[host.node_id] = directory
        host.raft = None
        host.life += 1
        host.wipe()
        self._later(self.faults.restart_ms, lambda: self._start(host))
        self._replace_voter()

    def _knows_as_voter(self, node_id: int, directory: bytes) -> bool:
        others = [host.raft for host in self.hosts if host.raft is not None]
        voters = [raft.voters.find(node_id) for raft in others]
        return any(voter is not None and voter.directory == directory for voter in voters)

    def _replace_voter(self) -> None:
        """Remove the voters of lost disks and add their nodes again, until that succeeds."""
        host = self.active()
        if host is not None:
            for node_id, directory in list(self._lost.items()):
                voter = _raft(host).voters.find(node_id)
                settled = _raft(host).log.history.offset < _raft(host).high_watermark
                if voter is not None and voter.directory == directory:
                    self.remove_voter(host, voter)
                elif settled and voter is not None:
                    del self._lost[node_id]
                elif voter is None:
                    self.add_voter(host, self.network.hosts[node_id])
        if self._lost:
            self.world.after(200, self._replace_voter)

    def _do_members(self) -> None:
        """Change the voters at any leader; it must refuse a second change or one too early."""
        leading = [host for host in self.hosts if host.leads]
        if not leading or self._lost:
            return
        host = self.world.rng.choice(leading)
        for _ in range(self.world.rng.randint(1, 2)):
            raft = _raft(host)
            outside = [h for h in self.hosts if raft.voters.find(h.node_id) is None]
            if outside and (len(raft.voters) < 4 or self.world.rng.random() < 0.5):
                self.add_voter(host, self.world.rng.choice(outside))
            elif len(raft.voters) > 3:
                self.remove_voter(host, self.world.rng.choice(raft.voters.voters))
            if not raft.elections.is_leader:
                return

    def _do_two_leaders(self) -> None:
        host = self.active()
        if host is not None:
            TwoLeaders(self.world, self.network, self).begin(host)

    def add_voter(self, host: RaftHost, new: RaftHost) -> None:
        """Ask a leader to add a voter."""
        if new.raft is None:
            return
        place = address_of(new.node_id)
        request = add_raft_voter.AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=500,
            voter_id=new.node_id,
            voter_directory_id=new.raft.identity.directory,
            listeners=[add_raft_voter.Listener(name=LISTENER, host=place.host, port=place.port)],
        )
        self.world.note("operator", f"adds {new.node_id} at {host.node_id}")
        host.run_event(host.life, lambda: _forget(_raft(host).handle_add_voter(request)))

    def remove_voter(self, host: RaftHost, voter: Voter) -> None:
        """Ask a leader to remove a voter."""
        request = remove_raft_voter.RemoveRaftVoterRequest(
            cluster_id=None, voter_id=voter.id, voter_directory_id=voter.directory
        )
        self.world.note("operator", f"removes {voter.id} at {host.node_id}")
        host.run_event(host.life, lambda: _forget(_raft(host).handle_remove_voter(request)))

    def _stop_faults(self) -> None:
        self._faulty = False
        self.world.note("world", "stops the faults")
        self.network.cuts.clear()
        self.network.loss = self.network.repeat = self.network.late = 0.0
        for host in self.hosts:
            if host.raft is None:
                self._start(host)


def _raft(host: RaftHost) -> Raft:
    assert host.raft is not None
    return host.raft


def _forget(answer: object) -> None:
    """Ignore a response, but check that there is one."""
    assert isinstance(answer, Pending) or getattr(answer, "error_code", None) is not None


def play(seed: int, faults: RaftFaults = RaftFaults(), *, keep_trace: bool = False) -> RaftWorld:
    """Run one seed to its end; raise `InvariantError` if a check fails."""
    world = RaftWorld(seed, faults, keep_trace=keep_trace)
    world.play()
    return world
