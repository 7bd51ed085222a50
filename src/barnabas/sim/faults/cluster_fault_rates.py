"""How often which faults happen in a cluster run.

As with a lone broker, every seed draws its own mixture (`sim/faults/fault_rates.py`).
"""

from dataclasses import dataclass, replace
from random import Random

from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.faults.fault_schedule import FULL_MS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaults:
    """How often what goes wrong; gaps are means, and 0 is never."""

    flush_on_ack: bool = True
    """Whether topics are synced before anything is acknowledged. If not, only one machine ever
    loses power and no process is killed: what such topics are promised is to survive that."""
    machine: Faults
    """What happens to clients, their connections and single machines."""
    targeted: float = 0.0
    """How often it hits the controller or a leader, not just anybody."""
    down_ms_max: int = 1_500
    """How long a broker is gone; some are fenced meanwhile."""
    blackout_gap_ms: int = 0
    """Between power cuts of all machines at once."""
    rolling_gap_ms: int = 0
    """Between restarts of one after the other, as they should be."""
    cut_gap_ms: int = 0
    """Between cables that are cut, one way or both."""
    isolation_gap_ms: int = 0
    """Between times in which a machine is cut off from all others, or from clients, too."""
    slow_gap_ms: int = 0
    """Between times in which a cable is slow."""
    standstill_gap_ms: int = 0
    """Between times in which a machine stands still."""
    clock_gap_ms: int = 0
    """Between jumps of a machine's clock on the wall."""
    triggered: float = 0.0
    """How often a fault waits for a critical moment (`sim/faults/triggered_faults.py`)."""
    flip_gap_ms: int = 0
    """Between bits that tip over in the logs of one machine, which shows when its broker starts
    again. Everything else that goes wrong then befalls the same machine."""
    lane_gap_ms: int = 0
    """Between connections of brokers with each other that break."""
    full_ms_max: int = FULL_MS_MAX
    """How long a disk is full."""

    @classmethod
    def swarm(cls, rng: Random) -> "ClusterFaults":
        """Draw a mixture."""
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
            standstill_gap_ms=rng.choice((0, 0, 3_000)),
            clock_gap_ms=rng.choice((0, 0, 3_000)),
            lane_gap_ms=rng.choice((0, 0, 500)),
            triggered=rng.choice((0.0, 0.0, 0.1, 0.4)),
            flip_gap_ms=rng.choice((0,) * 9 + (1_500,)),
        )

    @property
    def bearable(self) -> "ClusterFaults":
        """The same, without what nobody is promised to survive."""
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
