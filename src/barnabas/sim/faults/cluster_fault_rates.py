"""Defines how often each kind of fault happens in a cluster run.

Every seed draws its own mixture, as with a single broker (`sim/faults/fault_rates.py`).
"""

from dataclasses import dataclass, replace
from random import Random

from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.faults.fault_schedule import FULL_MS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaults:
    """The rates of faults. Gaps are means, and 0 means never."""

    flush_on_ack: bool = True
    """Whether topics are synced before records are acknowledged. If not, only one machine ever
    loses power, and no process is killed: acknowledged records of such topics survive nothing
    worse.
    """
    machine: Faults
    """The faults of clients, their connections and single machines."""
    targeted: float = 0.0
    """How often a fault hits the controller or a leader instead of a random broker."""
    down_ms_max: int = 1_500
    """The longest time that a broker is down; some are fenced meanwhile."""
    blackout_gap_ms: int = 0
    """The gap between power cuts of all machines at once."""
    rolling_gap_ms: int = 0
    """The gap between rolling restarts with a controlled shutdown of each broker."""
    cut_gap_ms: int = 0
    """The gap between cut links, in one direction or both."""
    isolation_gap_ms: int = 0
    """The gap between times in which a machine is cut off from all others, maybe from clients."""
    slow_gap_ms: int = 0
    """The gap between times in which a link is slow."""
    machine_pause_gap_ms: int = 0
    """The gap between pauses of a machine."""
    clock_gap_ms: int = 0
    """The gap between jumps of a machine's wall clock."""
    triggered: float = 0.0
    """How often a fault hits a critical moment (`sim/faults/triggered_faults.py`)."""
    flip_gap_ms: int = 0
    """The gap between flipped bits in the logs of one machine. The broker finds them when it
    restarts. All other faults then hit the same machine.
    """
    lane_gap_ms: int = 0
    """The gap between broken connections between brokers."""
    full_ms_max: int = FULL_MS_MAX
    """The longest time that a disk is full."""

    @classmethod
    def swarm(cls, rng: Random) -> "ClusterFaults":
        """Draw a mixture of faults."""
        return cls(
            flush_on_ack=rng.random() < 0.8,
            machine=Faults(
                delay_ms_max=rng.choice((2, 20, 150)),
                late_ms_max=rng.choice((0, 50, 3_000)),
                sync_ms_max=rng.choice((1, 10, 100)),
                stall_chance=rng.choice((0.0, 0.0, 0.005)),
                break_gap_ms=rng.choice((0, 1_000, 4_000)),
                pause_gap_ms=rng.choice((0, 0, 3_000)),
                client_crash_gap_ms=rng.choice((0, 0, 4_000)),
                zombie_gap_ms=rng.choice((0, 0, 5_000)),
                power_cut_gap_ms=rng.choice((0, 2_500, 6_000)),
                cut_at_sync=rng.choice((0.0, 0.0, 0.002)),
                kill_gap_ms=rng.choice((0, 2_500, 6_000)),
                stop_gap_ms=rng.choice((0, 0, 5_000)),
                full_disk_gap_ms=rng.choice((0, 0, 0, 6_000)),
            ),
            targeted=rng.choice((0.0, 0.5, 0.9)),
            down_ms_max=rng.choice((300, 2_000, 6_000)),
            blackout_gap_ms=rng.choice((0, 0, 6_000)),
            rolling_gap_ms=rng.choice((0, 0, 0, 8_000)),
            cut_gap_ms=rng.choice((0, 0, 1_500, 5_000)),
            isolation_gap_ms=rng.choice((0, 0, 3_000, 8_000)),
            slow_gap_ms=rng.choice((0, 0, 3_000)),
            machine_pause_gap_ms=rng.choice((0, 0, 3_000)),
            clock_gap_ms=rng.choice((0, 0, 3_000)),
            lane_gap_ms=rng.choice((0, 0, 500)),
            triggered=rng.choice((0.0, 0.0, 0.1, 0.4)),
            flip_gap_ms=rng.choice((0,) * 9 + (1_500,)),
        )

    @property
    def survivable(self) -> "ClusterFaults":
        """The same mixture without faults that the configuration does not have to survive."""
        if self.flip_gap_ms:
            machine = replace(self.machine, cut_at_sync=0.0, kill_gap_ms=2_500, stall_chance=0.0)
            return replace(
                self,
                flush_on_ack=True,
                machine=machine,
                triggered=0.0,
                blackout_gap_ms=0,
                rolling_gap_ms=0,
                cut_gap_ms=0,
                slow_gap_ms=0,
            )
        if self.flush_on_ack:
            return self
        machine = replace(self.machine, kill_gap_ms=0, cut_at_sync=0.0)
        return replace(self, machine=machine, blackout_gap_ms=0)
