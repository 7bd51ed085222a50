"""Data classes for a finding and a window, for the work on the driver.

Times are whole microseconds since 1970, as in Spark and Arrow: without time zones, cheap to
compare, and the same on every machine.
"""

from typing import NamedTuple

SECOND_US = 1_000_000


def us(seconds: float) -> int:
    """Return a duration in microseconds."""
    return round(seconds * SECOND_US)


class Finding(NamedTuple):
    """A row of the table `findings`, in the order of its columns."""

    window_start: int
    window_end: int
    gpu_id: str
    hostname: str | None
    model: str | None
    namespace: str | None
    finding: str
    severity: str
    value: float | None
    unit: str
    seconds: float | None
    joules: float | None
    detail: str


class Window(NamedTuple):
    """The relevant columns of a row of `gold_10s`; None if nothing was sampled."""

    window_start: int
    window_end: int
    gpu_id: str
    hostname: str | None = None
    model: str | None = None
    namespace: str | None = None
    util_idle_share: float | None = None
    util_busy_share: float | None = None
    util_falls: int | None = None
    fb_used_p50: float | None = None
    sm_clock_mean: float | None = None
    sm_clock_top: float | None = None
    energy_joules: float | None = None
    ecc_sbe_last: float | None = None
    ecc_dbe_last: float | None = None
    remapped_rows_last: float | None = None
    xids: list[int] | None = None
    """The codes, in their order."""
    link_share: float | None = None
    """The used share of the busier link's capacity."""
    samples: int | None = None
    """The number of samples; 0 if the last sample before the window is used."""
    covered_seconds: float | None = None
    interval_s: float | None = None

    @property
    def seconds(self) -> float:
        """Return the covered part of the window; for version 0.1, its length."""
        if self.covered_seconds is not None:
            return self.covered_seconds
        return (self.window_end - self.window_start) / SECOND_US

    @property
    def is_sampled(self) -> bool:
        """Whether the window has samples."""
        return self.samples != 0
