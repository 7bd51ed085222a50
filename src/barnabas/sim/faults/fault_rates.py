"""Defines how often each kind of fault happens in a run with a single broker.

Every seed draws its own mixture: some bugs appear only when one kind of fault is frequent and the
others are rare.
"""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The rates of faults. Gaps are means, and 0 means never."""

    delay_ms_max: int = 5
    """The longest delay of a frame."""
    late_ms_max: int = 0
    """How long after its connection broke a request may still arrive."""
    sync_ms_max: int = 3
    """The longest duration of a sync."""
    stall_chance: float = 0.0
    """The fraction of syncs that take seconds."""
    break_gap_ms: int = 0
    """The gap between broken connections."""
    pause_gap_ms: int = 0
    """The gap between pauses of clients. Some pauses are longer than a session timeout."""
    client_crash_gap_ms: int = 0
    """The gap between crashes of clients."""
    zombie_gap_ms: int = 0
    """The gap between producers that are started a second time while the first still runs."""
    power_cut_gap_ms: int = 0
    """The gap between power cuts of the broker."""
    cut_at_sync: float = 0.0
    """The fraction of syncs during which the power fails."""
    kill_gap_ms: int = 0
    """The gap between kills of the broker process, which keep written data."""
    stop_gap_ms: int = 0
    """The gap between clean shutdowns of the broker."""
    full_disk_gap_ms: int = 0
    """The gap between times in which the disk is full."""

    @classmethod
    def swarm(cls, rng: Random) -> "Faults":
        """Draw a mixture of faults."""
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
