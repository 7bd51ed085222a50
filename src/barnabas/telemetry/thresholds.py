"""Where findings begin, each number with its reason.

They are meant for any fleet: each follows from what the metric means or from how the hardware
works, none from one recording.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The settings of the rules. Shares are of the samples of a window."""

    idle_util_pct: float = 2.0
    """A card at or below this does nothing for its owner: background daemons touch it at most."""

    busy_util_pct: float = 50.0
    """A sample at or above this ran kernels for most of its interval."""

    idle_share: float = 0.9
    """A window is idle when nearly all of its samples are; a single touch does not end idleness."""

    parked_memory_share: float = 0.1
    """Memory held while idle counts as parked from this share of the card on: a CUDA context
    with its libraries takes one or two per cent, a model takes more."""

    working_power_share: float = 0.35
    """Kernels that do arithmetic or move memory draw at least this share of the power limit;
    below it, high utilisation means launches, not work."""

    capped_share: float = 0.5
    """A window counts as throttled when half of its samples were."""

    starved_idle_share: float = 0.2
    """A starved job idles at least this share of the time while it holds memory ..."""

    starved_busy_share: float = 0.05
    """... and is busy at least this share: it still lives."""

    straggler_mads: float = 5.0
    """A card this many median absolute deviations off its peers is no longer their spread."""

    straggler_floor_pct: float = 10.0
    """... and at least this far off in per cent of the median: peers in lockstep have MADs of 0."""

    straggler_peers: int = 4
    """Fewer peers have no meaningful median."""

    ecc_sbe_per_hour: float = 10.0
    """Corrected errors at this rate point at a failing cell row, not at cosmic rays."""

    repeat_offender_xids: int = 3
    """This many XID changes of one card in a day ask for a look at the card, not at the job."""

    missing_after_s: float = 60.0
    """Two scrapes of the exporter's default of 30 s."""

    late_after_s: float = 60.0
    """How far behind the newest sample another may be and still be counted (the watermark)."""

    ahead_s: float = 30.0
    """A sample further ahead of the broker's clock than this comes from a wrong clock: clocks that
    are kept in step agree within a second. Windows stay open that much longer."""

    still_every_s: float = 600.0
    """How often a standing alert is repeated: often enough to be found, no flood."""

    clear_after_s: float = 30.0
    """A finding must be gone this long before its alert clears, so that flapping is one alert."""

    price_per_kwh: float = 0.15
    """Money for a kWh, cooling included."""

    price_per_gpu_hour: float = 2.5
    """What an hour of a card costs whether it works or not."""
