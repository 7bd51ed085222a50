"""The faults of a cluster storm: how each begins and how it ends.

A fault that ended leaves a node that runs, or can run; the storm then waits until the cluster is
healthy. What a node may not do is noted as a problem by the fault itself: a clean stop with
another exit code than 0, a failed sync that does not end the process.
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
from tests.support.disks.mounts import CannotMountError, PowerCutDisk

SYNC_FAILED = 70
SYNC_PATIENCE_S = 30.0
DELAY_MS = (20, 150)
LOSS_MAX = 0.03
JUMPS_MS = (-3_000_000, -5_000, -400, 400, 5_000, 600_000, 86_400_000)
"""Back by less than an hour: records from further ahead are refused (KIP-937), and rightly so."""


@dataclass
class Scene:
    """Where faults happen."""

    cluster: ClusterProcesses
    ground: Ground
    rng: Random
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a fault did in particular: the file and the bit, the size of a jump."""

    def node(self, number: int) -> ClusterNode:
        """Return a node."""
        return self.cluster.nodes[number]

    def others(self, number: int) -> list[int]:
        """Return all nodes but one."""
        return [each for each in self.cluster.nodes if each != number]


class Fault(Protocol):
    """Something that goes wrong for a while."""

    hold_s: tuple[float, float]
    """The shortest and the longest that it is left to work."""
    needs: str
    """What it needs of the ground."""

    def begin(self, scene: Scene, number: int) -> None:
        """Break something."""

    def end(self, scene: Scene, number: int) -> None:
        """Have it repaired, as an operator would."""


class Kill:
    """SIGKILL; what the page cache holds survives."""

    hold_s = (0.2, 5.0)
    needs = ""

    def begin(self, scene: Scene, number: int) -> None:
        """Kill it."""
        scene.node(number).kill()

    def end(self, scene: Scene, number: int) -> None:
        """Start it again."""
        scene.node(number).start()


class Stop:
    """A planned stop."""

    hold_s = (0.2, 4.0)
    needs = ""

    def begin(self, scene: Scene, number: int) -> None:
        """Ask it to stop."""
        code = scene.node(number).terminate()
        if code:
            scene.problems.append(f"a clean stop of node {number} ended with {code}")

    def end(self, scene: Scene, number: int) -> None:
        """Start it again."""
        scene.node(number).start()


class Pause:
    """SIGSTOP: the world goes on without it, and it does not know."""

    needs = ""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self.hold_s = (shortest_s, longest_s)

    def begin(self, scene: Scene, number: int) -> None:
        """Stop its time."""
        scene.node(number).pause()

    def end(self, scene: Scene, number: int) -> None:
        """Let its time go on."""
        scene.node(number).resume()


class Cut:
    """No word passes between a node and the others, or none in one direction.

    Clients reach it all the while: a leader that has lost its followers goes on being asked.
    """

    hold_s = (1.0, 7.0)
    needs = NETWORK

    def __init__(self, *, one_way: bool, outside: bool = False) -> None:
        self._one_way = one_way
        self._outside = outside

    def begin(self, scene: Scene, number: int) -> None:
        """Cut it off."""
        assert scene.ground.network is not None
        inbound = not self._one_way or scene.rng.random() < 0.5
        outbound = not self._one_way or not inbound
        others = scene.others(number) + ([OUTSIDE] if self._outside else [])
        if self._one_way and scene.rng.random() < 0.5:
            others = [scene.rng.choice(others)]
        scene.notes.append(f"inbound={inbound} outbound={outbound} others={others}")
        scene.ground.network.cut(number, others, inbound=inbound, outbound=outbound)

    def end(self, scene: Scene, number: int) -> None:
        """Join it again."""
        assert scene.ground.network is not None
        scene.ground.network.heal(number)


class Slow:
    """What passes between a node and the others is late, out of order, and lost at times."""

    hold_s = (2.0, 6.0)
    needs = NETWORK

    def begin(self, scene: Scene, number: int) -> None:
        """Slow its link down."""
        assert scene.ground.network is not None
        delay_ms, loss = scene.rng.randint(*DELAY_MS), scene.rng.random() * LOSS_MAX
        scene.notes.append(f"delay_ms={delay_ms} loss={loss:.3f}")
        scene.ground.network.slow_down(number, delay_ms, delay_ms // 2, loss)

    def end(self, scene: Scene, number: int) -> None:
        """Let it be fast again."""
        assert scene.ground.network is not None
        scene.ground.network.speed_up(number)


class FullDisk:
    """Not a byte more fits on its disk."""

    hold_s = (1.0, 5.0)
    needs = DISKS

    def begin(self, scene: Scene, number: int) -> None:
        """Fill it."""
        scene.ground.fill_disk(number)

    def end(self, scene: Scene, number: int) -> None:
        """Make room; a node that took it for a reason to end is started again."""
        scene.ground.empty_disk(number)
        revive(scene, number)


class FailingSync:
    """The disk refuses to sync: the node must end at once, and never try again."""

    hold_s = (0.2, 3.0)
    needs = SHIM

    def begin(self, scene: Scene, number: int) -> None:
        """Refuse, and wait for its end."""
        node, control = scene.node(number), scene.ground.controls[number]
        before = control.failed_syncs
        control.fail_syncs(failing=True)
        try:
            eventually(lambda: not node.running, SYNC_PATIENCE_S)
        except AssertionError:
            refused = control.failed_syncs - before
            if refused:
                scene.problems.append(f"node {number} goes on after {refused} failed syncs")
            scene.notes.append(f"{refused} syncs were refused")
            node.kill()
            return
        if node.wait() != SYNC_FAILED:
            scene.problems.append(f"node {number} ended with {node.wait()} after a failed sync")

    def end(self, scene: Scene, number: int) -> None:
        """Give it a disk that works, and start it."""
        scene.ground.controls[number].fail_syncs(failing=False)
        scene.node(number).start()


class PowerLoss:
    """What was not synced is gone."""

    hold_s = (0.2, 4.0)
    needs = DISKS

    def begin(self, scene: Scene, number: int) -> None:
        """Cut its power."""
        scene.ground.disks[number].cut_power()
        scene.node(number).kill()
        eventually(lambda: _unmounted(scene.ground.disks[number]))

    def end(self, scene: Scene, number: int) -> None:
        """Power on."""
        scene.ground.disks[number].mount()
        scene.node(number).start()


class BitFlip:
    """Bits of its files turn while it is down."""

    hold_s = (0.0, 1.0)
    needs = ""

    def __init__(self) -> None:
        self._flips: list[Flip] = []

    def begin(self, scene: Scene, number: int) -> None:
        """End it, one way or the other, and flip."""
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
        """Start it; what it will not start with is restored, as from a mirror of the disk."""
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
    """The wall clock is put ahead or back."""

    hold_s = (1.0, 4.0)
    needs = SHIM

    def begin(self, scene: Scene, number: int) -> None:
        """Jump."""
        jump_ms = scene.rng.choice(JUMPS_MS)
        scene.notes.append(f"jump_ms={jump_ms}")
        scene.ground.controls[number].set_clock(jump_ms)

    def end(self, scene: Scene, number: int) -> None:
        """Jump back."""
        scene.ground.controls[number].set_clock(0)


def _unmounted(disk: PowerCutDisk) -> bool:
    """Take a disk down, unless a process that is about to end still holds it."""
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
"""By name; a fault is made anew each time it is drawn."""
