"""The thresholds of findings, each with its reason.

They are meant for any fleet: each follows from what the metric means or from how the hardware
works, none from one recording.
"""

from dataclasses import dataclass

from barnabas.telemetry.samples.catalogue import NEED_FINE_SAMPLES

STANDS_INTERVALS = 2.0
"""A sample stands for two intervals of its card: one scrape may be lost."""
STANDS_AT_LEAST_S = 10.0
"""A pause as short as this is a hiccup of the collector, whatever the interval."""


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
    lightly used card misleads no reader."""

    working_sm_active: float = 0.5
    """Kernels that keep half of the multiprocessors occupied work, however little they draw."""

    memory_bound_dram_active: float = 0.4
    """From here on a card waits for its memory: kernels that only move memory reach 0.8 to 0.9 of
    the counter's scale, and this is about half of it. An H200 showed 0.51 and more where memory was
    the limit, 0.21 and less if it was not."""

    memory_bound_mem_util_pct: float = 80.0
    """Where that counter is not sampled, memory must be read or written nearly all of the time
    (utilization.memory): an H200 showed 100 for copies, at most 44 for anything else ..."""

    memory_bound_power_share: float = 0.8
    """... at no more than this share of the power limit: kernels that keep the arithmetic busy as
    well draw more, and do not wait for memory."""

    link_bound_share: float = 0.5
    """PCIe or NVLink that moves half of what it can is busy most of the time: gaps between copies
    and small ones take the rest. A card whose multiprocessors wait meanwhile waits for the link."""

    quiet_link_share: float = 0.1
    """Below this, transfers are no reason to wait. From here on a card is not idle, and launches
    are not what it waits for."""

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
    """This many windows in a row, each partly idle and partly busy, are a pattern too: a start, an
    end or one pause affects at most two windows."""

    starved_falls: int = 2
    """One fall is a job that ended, or a checkpoint; from the second on it is a pattern."""

    stands_at_most_s: float = 300.0
    """A sample is valid until the next one of its card, and for at most two of its intervals. It is
    never valid for longer than this: Prometheus calls a series stale then."""

    fine_interval_s: float = 2.0
    """Stalls of a job last seconds. Samples every 2 s show nine of ten of them; every 5 s, three of
    ten, and one launch-bound finding in seven is wrong. So `starved` and `launch_bound` are not
    looked for where samples are further apart than this."""

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

    clock_skew_s: float = 5.0
    """A card whose samples are further ahead of the broker's clock than this has a wrong clock,
    though they are taken up to `ahead_s`. One that is behind shows once its samples are late."""

    raise_warning_after_s: float = 20.0
    """A warning must last two windows: a single one may be an edge."""

    raise_info_after_s: float = 300.0
    """Waste is news after minutes: between two jobs every card idles for a while."""

    tick_ahead_s: float = 300.0
    """How far a tick may be ahead of the broker's clock. It is the word of a collector that has no
    more to send, so that windows close; what still comes from before it is late."""

    still_every_s: float = 600.0
    """How often an active alert is repeated: often enough to be seen, without a flood."""

    clear_after_s: float = 30.0
    """A finding must be gone this long before its alert clears, so that flapping is one alert."""

    event_clear_after_s: float = 3600.0
    """An event (an XID) has no end of its own: its alert stands for the time it takes to drain a
    card, and a repetition prolongs it."""

    flap_raises: int = 3
    """An alert that would be raised this often within `flap_within_s` is announced as flapping,
    once: two may be chance, three are a load that starts and stops. 0 turns it off."""

    flap_within_s: float = 1800.0
    """Raises are counted over this long."""

    flap_calm_s: float = 900.0
    """A flapping alert clears when its finding was gone for this long."""

    flap_still_every_s: float = 1800.0
    """How often a flapping alert is repeated."""

    group_every_s: float = 60.0
    """More cards of a node and namespace with a finding that is already announced are announced
    together, so often at most."""

    price_per_kwh: float = 0.15
    """Money for a kWh, cooling included."""

    price_per_gpu_hour: float = 2.5
    """What an hour of a card costs whether it works or not."""

    def coarse_above_s(self, finding: str) -> float | None:
        """Return from where on samples are too far apart for a finding; None if any rate does.

        A quarter more than `fine_interval_s`, as no collector keeps time exactly.
        """
        return 1.25 * self.fine_interval_s if finding in NEED_FINE_SAMPLES else None
