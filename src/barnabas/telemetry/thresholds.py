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

    looks_busy_util_pct: float = 20.0
    """From here on a dashboard shows a card as used, so that missing power is worth a word; a
    lightly used card deceives nobody."""

    working_sm_active: float = 0.5
    """Kernels that keep half of the multiprocessors occupied work, however little they draw."""

    capped_share: float = 0.5
    """A window counts as throttled when half of its samples were."""

    starved_idle_share: float = 0.2
    """A starved job idles at least this share of the time while it holds memory ..."""

    starved_busy_share: float = 0.05
    """... and is busy at least this share: it still lives."""

    starved_over_s: float = 60.0
    """Stalls are looked for over this long: samples a second apart see few stalls of a single
    window, and a loader that stalls a job does so again and again."""

    starved_windows: int = 3
    """So many windows in a row, each part idle and part busy, are a pattern too: a start, an end or
    one pause spoils two neighbours at most."""

    starved_falls: int = 2
    """One fall is a job that ended, or a checkpoint; from the second on it is a pattern."""

    held_memory_mib: float = 1000.0
    """More than the driver's reserve and a bare CUDA context take: a job lives on the card."""

    straggler_mads: float = 5.0
    """A card this many median absolute deviations off its peers is no longer their spread."""

    straggler_floor_pct: float = 10.0
    """... and at least this far off in per cent of the median: peers in lockstep have MADs of 0."""

    straggler_lockstep_pct: float = 10.0
    """Cards of one job do the same at the same time: their middle spread of utilisation and power
    stays within noise. Peers that spread wider run different things and cannot be compared."""

    straggler_peers: int = 4
    """Fewer peers have no meaningful median."""

    ecc_sbe_per_hour: float = 10.0
    """Corrected errors at this rate point at a failing cell row, not at cosmic rays."""

    ecc_quiet_after_s: float = 300.0
    """A trend whose counter has not moved for this long has stopped, whatever the hour's sum."""

    repeat_offender_xids: int = 3
    """This many XID changes of one card in a day ask for a look at the card, not at the job."""

    missing_after_s: float = 60.0
    """Two scrapes of the exporter's default of 30 s."""

    forget_after_s: float = 86_400.0
    """A card that is gone for a day was taken out: it leaves the inventory."""

    late_after_s: float = 60.0
    """How far behind the newest sample another may be and still be counted (the watermark)."""

    ahead_s: float = 30.0
    """A sample further ahead of the broker's clock than this comes from a wrong clock: clocks that
    are kept in step agree within a second. Windows stay open that much longer."""

    raise_warning_after_s: float = 20.0
    """A warning must last two windows: one may be the edge of something."""

    raise_info_after_s: float = 300.0
    """Waste is news after minutes: between two jobs every card idles for a while."""

    tick_ahead_s: float = 300.0
    """How far a tick may be ahead of the broker's clock. It is the word of a collector that has no
    more to send, so that windows close; what still comes from before it is late."""

    still_every_s: float = 600.0
    """How often a standing alert is repeated: often enough to be found, no flood."""

    clear_after_s: float = 30.0
    """A finding must be gone this long before its alert clears, so that flapping is one alert."""

    event_clear_after_s: float = 3600.0
    """An event (an XID) has no end of its own: its alert stands for the time it takes to drain a
    card, and a repetition prolongs it."""

    price_per_kwh: float = 0.15
    """Money for a kWh, cooling included."""

    price_per_gpu_hour: float = 2.5
    """What an hour of a card costs whether it works or not."""
