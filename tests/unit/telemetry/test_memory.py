"""Tests the state of a GPU: XIDs as events, trends, starving jobs."""

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.telemetry.findings.finding import Finding, Window, us
from barnabas.telemetry.findings.gpu_history import Memory, step
from barnabas.telemetry.findings.thresholds import Thresholds

THRESHOLDS = Thresholds()


def window(number: int, **metrics: Any) -> Window:
    return Window(us(number * 10), us(number * 10 + 10), "GPU-1", "node-1", **metrics)


def findings_named(windows: Sequence[Window], name: str) -> list[list[Finding]]:
    """Return the findings of one name for each window in turn."""
    memory: Memory | None = None
    all_found = []
    for each in windows:
        memory, found = step(memory, each, THRESHOLDS)
        all_found.append([finding for finding in found if finding.finding == name])
    return all_found


def xid_windows(*codes: list[int] | None) -> list[Window]:
    return [window(number, xids=list(each) if each else each) for number, each in enumerate(codes)]


def reported_codes(*codes: list[int] | None) -> list[list[float | None]]:
    return [[each.value for each in found] for found in findings_named(xid_windows(*codes), "xid")]


def test_a_gauge_that_holds_an_xid_is_one_event() -> None:
    assert reported_codes([], [79], [79], [79]) == [[], [79], [], []]


def test_each_change_of_the_gauge_is_an_event() -> None:
    assert reported_codes([], [13, 31], [31, 79], [48]) == [[], [13, 31], [79], [48]]


def test_an_xid_that_went_and_came_back_is_news_again() -> None:
    assert reported_codes([], [31], [], [31]) == [[], [31], [], [31]]


def test_a_window_without_xid_samples_changes_nothing() -> None:
    assert reported_codes([], [31], None, [31]) == [[], [31], [], []]


def test_a_code_held_at_first_sight_is_news_only_if_it_asks_for_a_drain() -> None:
    assert reported_codes([43], [43]) == [[], []]
    assert reported_codes([79], [79]) == [[79], []]


def test_the_action_of_an_xid_comes_with_its_severity() -> None:
    (_, (finding,)) = findings_named(xid_windows([], [79]), "xid")
    assert finding.severity == "critical"
    assert "fell off the bus" in finding.detail
    assert "power-cycle" in finding.detail
    (_, (unknown,)) = findings_named(xid_windows([], [9999]), "xid")
    assert unknown.severity == "warning"


def test_the_third_xid_of_a_day_makes_a_repeat_offender() -> None:
    found = findings_named(xid_windows([], [13], [31], [31], [43], [45]), "repeat_offender")
    assert [[each.value for each in row] for row in found] == [[], [], [], [], [3], [4]]


def test_xids_of_yesterday_do_not_count() -> None:
    day = 8_640
    windows = [window(0, xids=[]), window(1, xids=[13]), window(2, xids=[31])]
    windows.append(window(day + 10, xids=[43]))
    assert findings_named(windows, "repeat_offender") == [[], [], [], []]


def test_corrected_errors_are_a_trend_from_ten_an_hour() -> None:
    errors = [100.0, 104.0, 109.0, 110.0, 111.0]
    found = findings_named(
        [window(n, ecc_sbe_last=each) for n, each in enumerate(errors)], "ecc_trend"
    )
    assert [[each.value for each in row] for row in found] == [[], [], [], [10], [11]]


def test_a_trend_ends_when_the_counter_rests() -> None:
    windows = [window(0, ecc_sbe_last=0.0)]
    windows += [window(number, ecc_sbe_last=50.0) for number in range(1, 60)]
    found = [bool(each) for each in findings_named(windows, "ecc_trend")]
    assert found[1:31] == [True] * 30
    assert not any(found[31:])


def test_nine_errors_in_each_hour_are_no_trend() -> None:
    windows = [window(number, ecc_sbe_last=float(number // 40)) for number in range(360 * 3)]
    assert not any(findings_named(windows, "ecc_trend"))


def test_a_counter_that_starts_over_is_no_trend() -> None:
    errors = [500.0, 0.0, 1.0]
    assert not any(
        findings_named([window(n, ecc_sbe_last=e) for n, e in enumerate(errors)], "ecc_trend")
    )


def test_an_uncorrectable_error_is_critical_at_once() -> None:
    windows = [
        window(0, ecc_dbe_last=0.0),
        window(1, ecc_dbe_last=1.0),
        window(2, ecc_dbe_last=1.0),
    ]
    (_, (finding,), after) = findings_named(windows, "ecc_trend")
    assert finding.severity == "critical"
    assert after == []


def test_remapped_rows_are_reported() -> None:
    windows = [window(0, remapped_rows_last=1.0), window(1, remapped_rows_last=3.0)]
    (_, (finding,)) = findings_named(windows, "ecc_trend")
    assert (finding.value, finding.unit) == (2.0, "rows")


def job(number: int, idle: float, busy: float, falls: int, held_mib: float = 40_000.0) -> Window:
    return window(
        number,
        util_idle_share=idle,
        util_busy_share=busy,
        util_falls=falls,
        fb_used_p50=held_mib,
    )


def starved(*windows: Window) -> list[bool]:
    return [bool(each) for each in findings_named(windows, "starved")]


def test_repeated_falls_in_one_window_are_starvation() -> None:
    assert starved(job(0, 0.0, 1.0, 0), job(1, 0.7, 0.2, 5)) == [False, True]


def test_falls_that_coarse_samples_catch_add_up_over_windows() -> None:
    assert starved(job(0, 0.7, 0.3, 1), job(1, 0.7, 0.2, 1)) == [False, True]


def test_windows_that_stay_mixed_are_starvation_even_without_falls() -> None:
    mixed = [job(number, 0.6, 0.1, 0) for number in range(3)]
    assert starved(*mixed) == [False, False, True]


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param([job(0, 1, 0, 0), job(1, 0.5, 0.5, 0), job(2, 0, 1, 0)], id="starts"),
        pytest.param([job(0, 0, 1, 0), job(1, 0.5, 0.5, 1), job(2, 1, 0, 0)], id="ends"),
        pytest.param([job(0, 0.25, 0.7, 1), job(1, 0.25, 0.7, 0), job(2, 0, 1, 0)], id="pauses"),
        pytest.param([job(0, 0.7, 0.2, 5, 500), job(1, 0.7, 0.2, 5, 500)], id="holds nothing"),
        pytest.param([job(0, 0.95, 0.05, 1), job(1, 0.95, 0.05, 1)], id="touched while idle"),
        pytest.param(
            [job(0, 0.7, 0.2, 1), job(1, 0, 1, 0), job(2, 0, 1, 0), job(3, 0.8, 0.2, 1)],
            id="pauses, works and ends",
        ),
        pytest.param([job(0, 0.1, 0.6, 1), job(1, 0.1, 0.6, 1), job(2, 0.1, 0.6, 1)], id="waves"),
    ],
)
def test_a_job_that_merely(windows: list[Window]) -> None:
    assert not any(starved(*windows))


def test_a_job_that_waits_for_a_link_is_not_starved() -> None:
    stalls = job(0, 0.7, 0.2, 5)
    assert starved(stalls._replace(link_share=0.05)) == [True]
    assert starved(stalls._replace(link_share=0.9)) == [False]
    waits = [job(number, 0.6, 0.1, 1)._replace(link_share=0.9) for number in range(4)]
    assert not any(starved(*waits))


def test_a_job_that_starves_after_a_long_rest_is_seen_at_once() -> None:
    rest = [job(number, 1.0, 0.0, 0) for number in range(6)]
    assert starved(*rest, job(6, 0.7, 0.2, 4))[-1]


def test_a_gap_in_the_windows_breaks_the_pattern() -> None:
    windows = [job(0, 0.6, 0.1, 0), job(1, 0.6, 0.1, 0), job(30, 0.6, 0.1, 0)]
    assert not any(starved(*windows))


def test_a_card_that_samples_nothing_is_silent() -> None:
    memory, found = step(None, window(0), THRESHOLDS)
    assert found == []
    assert step(memory, window(1), THRESHOLDS)[1] == []


def test_a_window_of_the_past_changes_nothing() -> None:
    memory, _ = step(None, window(5, xids=[]), THRESHOLDS)
    assert step(memory, window(4, xids=[79]), THRESHOLDS) == (memory, [])


@pytest.mark.parametrize(
    ("interval_s", "is_told"), [(None, True), (1.0, True), (2.4, True), (5.0, False)]
)
def test_starvation_is_not_guessed_from_samples_that_are_far_apart(
    interval_s: float | None, is_told: bool
) -> None:
    stalls = job(1, 0.7, 0.2, 5)._replace(interval_s=interval_s)
    assert starved(job(0, 0.0, 1.0, 0), stalls) == [False, is_told]
