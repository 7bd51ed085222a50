"""Defines the faults of a cluster storm: how each begins and how it ends.

After a fault the node runs, or can run; the storm then waits until the cluster is healthy. The
fault itself reports what a node did wrong during it: a clean stop with an exit code other than 0,
or a failed sync that does not end the process.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from barnabas.testing.cluster_processes import ClusterNode, ClusterProcesses
from barnabas.testing.process import BrokerFailedError
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_damage import METADATA, Flip, flip_one
from tests.support.clusters.cluster_ground import DISKS, NETWORK, SHIM, Ground
from tests.support.clusters.cluster_places import OUTSIDE
from tests.support.clusters.cluster_security import ClusterSecurity
from tests.support.disks.mounts import CannotMountError, PowerCutDisk

SYNC_FAILED = 70
SYNC_PATIENCE_S = 30.0
DELAY_MS = (20, 150)
LOSS_MAX = 0.03
JUMPS_MS = (-3_000_000, -5_000, -400, 400, 5_000, 600_000, 86_400_000)
"""Less than an hour back: records from further in the future are refused (KIP-937)."""


@dataclass
class Scene:
    """The cluster and the environment in which faults happen."""

    cluster: ClusterProcesses
    ground: Ground
    rng: Random
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """The details of a fault: the file and the bit, or the size of a clock jump."""
    security: ClusterSecurity | None = None
    """The certificates and rights of a cluster with security."""

    def node(self, number: int) -> ClusterNode:
        """Return a node."""
        return self.cluster.nodes[number]

    def others(self, number: int) -> list[int]:
        """Return all nodes except one."""
        return [each for each in self.cluster.nodes if each != number]


class Fault(Protocol):
    """A fault with a duration."""

    hold_s: tuple[float, float]
    """The shortest and the longest duration."""
    needs: str
    """The requirements on the environment."""

    def begin(self, scene: Scene, number: int) -> None:
        """Start the fault."""

    def end(self, scene: Scene, number: int) -> None:
        """Repair it, as an operator would."""


class Kill:
    """SIGKILL; data in the page cache survives."""

    hold_s = (0.2, 5.0)
    needs = ""

    def begin(self, scene: Scene, number: int) -> None:
        """Kill the node."""
        scene.node(number).kill()

    def end(self, scene: Scene, number: int) -> None:
        """Start the node again."""
        scene.node(number).start()


class Stop:
    """A planned stop."""

    hold_s = (0.2, 4.0)
    needs = ""

    def begin(self, scene: Scene, number: int) -> None:
        """Ask the node to stop."""
        code = scene.node(number).terminate()
        if code:
            scene.problems.append(f"a clean stop of node {number} ended with {code}")

    def end(self, scene: Scene, number: int) -> None:
        """Start the node again."""
        scene.node(number).start()


class Pause:
    """SIGSTOP: the process does not notice that time passes."""

    needs = ""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self.hold_s = (shortest_s, longest_s)

    def begin(self, scene: Scene, number: int) -> None:
        """Stop the process."""
        scene.node(number).pause()

    def end(self, scene: Scene, number: int) -> None:
        """Resume the process."""
        scene.node(number).resume()


class Cut:
    """Cuts a node off from the others, in one direction or both.

    Clients still reach it: a leader that has lost its followers still gets requests.
    """

    hold_s = (1.0, 7.0)
    needs = NETWORK

    def __init__(self, *, one_way: bool, outside: bool = False) -> None:
        self._one_way = one_way
        self._outside = outside

    def begin(self, scene: Scene, number: int) -> None:
        """Cut the node off."""
        assert scene.ground.network is not None
        inbound = not self._one_way or scene.rng.random() < 0.5
        outbound = not self._one_way or not inbound
        others = scene.others(number) + ([OUTSIDE] if self._outside else [])
        if self._one_way and scene.rng.random() < 0.5:
            others = [scene.rng.choice(others)]
        scene.notes.append(f"inbound={inbound} outbound={outbound} others={others}")
        scene.ground.network.cut(number, others, inbound=inbound, outbound=outbound)

    def end(self, scene: Scene, number: int) -> None:
        """Reconnect the node."""
        assert scene.ground.network is not None
        scene.ground.network.heal(number)


class Slow:
    """Delays, reorders and sometimes loses frames between a node and the others."""

    hold_s = (2.0, 6.0)
    needs = NETWORK

    def begin(self, scene: Scene, number: int) -> None:
        """Slow the link down."""
        assert scene.ground.network is not None
        delay_ms, loss = scene.rng.randint(*DELAY_MS), scene.rng.random() * LOSS_MAX
        scene.notes.append(f"delay_ms={delay_ms} loss={loss:.3f}")
        scene.ground.network.slow_down(number, delay_ms, delay_ms // 2, loss)

    def end(self, scene: Scene, number: int) -> None:
        """Make the link fast again."""
        assert scene.ground.network is not None
        scene.ground.network.speed_up(number)


class FullDisk:
    """Fills the disk of a node completely."""

    hold_s = (1.0, 5.0)
    needs = DISKS

    def begin(self, scene: Scene, number: int) -> None:
        """Fill the disk."""
        scene.ground.fill_disk(number)

    def end(self, scene: Scene, number: int) -> None:
        """Free the space; start the node again if it ended because of the full disk."""
        scene.ground.empty_disk(number)
        revive(scene, number)


class FailingSync:
    """The disk refuses to sync: the node must end at once, and must not retry."""

    hold_s = (0.2, 3.0)
    needs = SHIM

    def begin(self, scene: Scene, number: int) -> None:
        """Refuse syncs, and wait until the node ends."""
        node, control = scene.node(number), scene.ground.controls[number]
        before = control.failed_syncs
        control.fail_syncs(failing=True)
        try:
            eventually(lambda: not node.running, SYNC_PATIENCE_S)
        except AssertionError:
            refused = control.failed_syncs - before
            if refused:
                scene.problems.append(f"node {number} continues after {refused} failed syncs")
            scene.notes.append(f"{refused} syncs were refused")
            node.kill()
            return
        if node.wait() != SYNC_FAILED:
            scene.problems.append(f"node {number} ended with {node.wait()} after a failed sync")

    def end(self, scene: Scene, number: int) -> None:
        """Let syncs work again, and start the node."""
        scene.ground.controls[number].fail_syncs(failing=False)
        scene.node(number).start()


class PowerLoss:
    """A power cut loses unsynced data."""

    hold_s = (0.2, 4.0)
    needs = DISKS

    def begin(self, scene: Scene, number: int) -> None:
        """Cut the power."""
        scene.ground.disks[number].cut_power()
        scene.node(number).kill()
        eventually(lambda: _unmounted(scene.ground.disks[number]))

    def end(self, scene: Scene, number: int) -> None:
        """Restore the power, and start the node."""
        scene.ground.disks[number].mount()
        scene.node(number).start()


class BitFlip:
    """Flips bits in the node's files while it is down."""

    hold_s = (0.0, 1.0)
    needs = ""

    def __init__(self) -> None:
        self._flips: list[Flip] = []

    def begin(self, scene: Scene, number: int) -> None:
        """Stop or kill the node, and flip bits."""
        node = scene.node(number)
        if scene.rng.random() < 0.5:
            node.kill()
        else:
            Stop().begin(scene, number)
        found = [flip_one(node.data, scene.rng) for _ in range(scene.rng.randint(1, 3))]
        self._flips = [flip for flip in found if flip]
        told = [(f.kind, f.path.relative_to(node.data), f.position) for f in self._flips]
        scene.notes.append(", ".join(f"{kind} {path}:{at}" for kind, path, at in told))

    def end(self, scene: Scene, number: int) -> None:
        """Start the node; restore files with which it does not start, as from a disk mirror."""
        node = scene.node(number)
        try:
            node.start()
        except BrokerFailedError as error:
            if METADATA.isdisjoint(flip.kind for flip in self._flips):
                scene.problems.append(f"node {number} does not start: {str(error)[-500:]}")
            scene.notes.append("refused to start")
            for flip in self._flips:
                flip.undo()
            node.start()


class ClockJump:
    """The wall clock jumps ahead or back."""

    hold_s = (1.0, 4.0)
    needs = SHIM

    def begin(self, scene: Scene, number: int) -> None:
        """Move the clock."""
        jump_ms = scene.rng.choice(JUMPS_MS)
        scene.notes.append(f"jump_ms={jump_ms}")
        scene.ground.controls[number].set_clock(jump_ms)

    def end(self, scene: Scene, number: int) -> None:
        """Move the clock back."""
        scene.ground.controls[number].set_clock(0)


def _unmounted(disk: PowerCutDisk) -> bool:
    """Unmount a disk, unless a process that is about to end still uses it."""
    try:
        disk.unmount()
    except CannotMountError:
        return False
    return True


def revive(scene: Scene, number: int) -> None:
    """Start a node that has ended by itself."""
    node = scene.node(number)
    if not node.running:
        scene.notes.append(f"node {number} had ended with {node.wait()}")
        with contextlib.suppress(BrokerFailedError):
            node.start()


FAULTS: dict[str, Callable[[], Fault]] = {
    "kill": Kill,
    "clean stop": Stop,
    "short pause": lambda: Pause(0.3, 2.0),
    "long pause": lambda: Pause(4.0, 8.0),
    "cut": lambda: Cut(one_way=False),
    "one-way cut": lambda: Cut(one_way=True),
    "isolation": lambda: Cut(one_way=False, outside=True),
    "slow link": Slow,
    "full disk": FullDisk,
    "failing sync": FailingSync,
    "power loss": PowerLoss,
    "bit flip": BitFlip,
    "clock jump": ClockJump,
}
"""The faults by name; each draw creates a new one."""
