"""Tests the clock that was lost to throttling."""

from barnabas.telemetry.findings.assessment import FleetState, assess
from barnabas.telemetry.findings.finding import Finding, Window
from barnabas.telemetry.findings.thresholds import Thresholds

SECOND_US = 1_000_000


def window(number: int, mean: float | None, top: float | None) -> Window:
    start = number * 10 * SECOND_US
    return Window(start, start + 10 * SECOND_US, "a", sm_clock_mean=mean, sm_clock_top=top)


def capped(at: Window) -> Finding:
    return Finding(
        *at[:6], "power_capped", "warning", None, "% clock", 10.0, None, "power-capped 100%"
    )


def lost(*windows: Window) -> list[float | None]:
    found = [capped(each) for each in windows]
    assessed = assess(FleetState(), windows, found, Thresholds())
    return [each.value for each in assessed.findings if each.finding == "power_capped"]


def test_a_card_is_held_against_its_fastest() -> None:
    assert lost(window(1, 1980, 1980), window(2, 1485, 1500)) == [0, 25]


def test_what_the_exporter_names_counts_at_once() -> None:
    assert lost(window(1, 990, 1980)) == [50]


def test_nothing_is_reported_if_nothing_is_known() -> None:
    assert lost(window(1, None, None), window(2, 1500, None)) == [None, None]
