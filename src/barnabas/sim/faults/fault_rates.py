"""How often which faults happen in a run with a lone broker.

Every seed draws its own mixture: some bugs appear only when one kind of fault is frequent and the
others are rare.
"""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often what goes wrong; gaps are means, and 0 is never."""

    delay_ms_max: int = 5
    """The longest way of a frame."""
    late_ms_max: int = 0
    """How long after its connection broke a request may still arrive."""
    sync_ms_max: int = 3
    """The longest that a sync takes."""
    stall_chance: float = 0.0
    """How many syncs take seconds."""
    break_gap_ms: int = 0
    """Between broken connections."""
    pause_gap_ms: int = 0
    """Between clients that stand still, some for longer than their sessions last."""
    client_crash_gap_ms: int = 0
    """Between clients that die and come back."""
    zombie_gap_ms: int = 0
    """Between producers that are started again although they still run."""
    power_cut_gap_ms: int = 0
    """Between power cuts of the broker."""
    cut_at_sync: float = 0.0
    """How many syncs end in a power cut."""
    kill_gap_ms: int = 0
    """Between ends of the broker's process, which keep what was written."""
    stop_gap_ms: int = 0
    """Between stops of the broker as they should be."""
    full_disk_gap_ms: int = 0
    """Between times in which the disk takes nothing more."""

    @classmethod
    def swarm(cls, rng: Random) -> "Faults":
        """Draw a mixture."""
        return cls(
            delay_ms_max=rng.choice((2, 20, 300)),
            late_ms_max=rng.choice((0, 50, 3_000, 12_000)),
            sync_ms_max=rng.choice((1, 10, 200)),
            stall_chance=rng.choice((0.0, 0.0, 0.02)),
            break_gap_ms=rng.choice((0, 300, 2_000)),
            pause_gap_ms=rng.choice((0, 0, 800, 3_000)),
            client_crash_gap_ms=rng.choice((0, 0, 1_000, 4_000)),
            zombie_gap_ms=rng.choice((0, 0, 3_000)),
            power_cut_gap_ms=rng.choice((0, 0, 2_500, 6_000)),
            cut_at_sync=rng.choice((0.0, 0.0, 0.005, 0.02)),
            kill_gap_ms=rng.choice((0, 0, 4_000)),
            stop_gap_ms=rng.choice((0, 0, 4_000)),
            full_disk_gap_ms=rng.choice((0, 0, 0, 6_000)),
        )
