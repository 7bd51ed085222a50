"""Tests whole batches: silence and hosts, the cut of batches, and states that survive restarts."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs pip install 'barnabas[spark]'")

import pyarrow.parquet as pq

from barnabas.telemetry.findings.assessment import Assessment, FleetState, assess
from barnabas.telemetry.findings.assessment_store import StateMissingError, StateStore
from barnabas.telemetry.findings.finding import Finding, Window, us
from barnabas.telemetry.findings.gpu_history import report
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.samples.catalogue import Name

THRESHOLDS = Thresholds()


def window(number: int, gpu: str, host: str = "node-1", **metrics: Any) -> Window:
    return Window(us(number * 10), us(number * 10 + 10), gpu, host, **metrics)


def silence(assessment: Assessment) -> dict[str, int]:
    counted: dict[str, int] = {}
    for finding in assessment.findings:
        if finding.finding == "missing":
            counted[finding.gpu_id] = counted.get(finding.gpu_id, 0) + 1
    return counted


def missing_alerts(assessment: Assessment) -> list[tuple[str, str]]:
    return [
        (alert.gpu_id, alert.state) for alert in assessment.alerts if alert.finding == "missing"
    ]


def test_a_card_is_missing_after_a_minute_and_until_it_returns() -> None:
    rows = [window(number, "GPU-1") for number in range(30)]
    rows += [window(number, "GPU-2") for number in [0, *range(20, 30)]]
    assessment = assess(FleetState(), rows, [], THRESHOLDS)
    assert silence(assessment) == {"GPU-2": 14}
    assert missing_alerts(assessment) == [("GPU-2", "raised"), ("GPU-2", "cleared")]


def test_scrapes_every_half_minute_are_not_missing() -> None:
    rows = [window(number, "GPU-1") for number in range(60)]
    rows += [window(number, "GPU-2") for number in range(0, 60, 3)]
    assert silence(assess(FleetState(), rows, [], THRESHOLDS)) == {}


def test_a_host_that_goes_silent_is_one_alert() -> None:
    others = [window(number, "GPU-1") for number in range(40)]
    lost = [
        window(n, f"GPU-{card}", "node-2") for card in range(2, 10) for n in range(card % 2 + 1)
    ]
    assessment = assess(FleetState(), others + lost, [], THRESHOLDS)
    assert set(silence(assessment)) == {f"GPU-{card}" for card in range(2, 10)}
    assert missing_alerts(assessment) == [("host:node-2", "raised")]
    (alert,) = (each for each in assessment.alerts if each.finding == "missing")
    assert "none of its 8 GPUs" in alert.message


def test_when_part_of_a_host_returns_the_rest_is_alerted_together() -> None:
    rows = [window(number, "GPU-1") for number in range(40)]
    rows += [window(0, f"GPU-{card}", "node-2") for card in (2, 3, 4)]
    rows += [window(number, "GPU-2", "node-2") for number in range(20, 40)]
    assessment = assess(FleetState(), rows, [], THRESHOLDS)
    assert missing_alerts(assessment) == [
        ("host:node-2", "raised"),
        ("GPU-3", "raised"),
        ("host:node-2", "cleared"),
    ]
    (rest,) = (each for each in assessment.alerts if each.gpu_id == "GPU-3")
    assert rest.gpus == ("GPU-3", "GPU-4")


def test_a_card_that_is_gone_for_a_day_is_forgotten() -> None:
    rows = [window(0, "GPU-2"), *(window(number, "GPU-1") for number in range(0, 9000, 3))]
    assessment = assess(FleetState(), rows, [], THRESHOLDS)
    assert set(assessment.state.fleet.gpus) == {"GPU-1"}
    assert [state for _, state in missing_alerts(assessment)][-1] == "cleared"


shares = st.sampled_from([0.0, 0.5, 0.7, 1.0])
rows_of_cards = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(1, 3),
        shares,
        st.sampled_from([None, [], [13], [79], [31, 48]]),
        st.sampled_from([None, 0.0, 7.0, 20.0]),
    ),
    max_size=60,
    unique_by=lambda row: row[:2],
)


@given(rows_of_cards, st.sets(st.integers(0, 40)))
def test_how_the_stream_is_cut_into_batches_does_not_show(
    drawn: list[tuple[int, int, float, list[int] | None, float | None]], cuts: set[int]
) -> None:
    rows = [
        window(
            number,
            f"GPU-{card}",
            f"node-{card % 2}",
            util_idle_share=idle,
            util_busy_share=1 - idle,
            util_falls=2,
            fb_used_p50=5000.0,
            xids=xids,
            ecc_sbe_last=errors,
        )
        for number, card, idle, xids, errors in drawn
    ]
    whole = assess(FleetState(), rows, [], THRESHOLDS)
    state, findings, alerts = FleetState(), [], []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 100], strict=True):
        batch = [each for each in rows if us(start * 10) <= each.window_start < us(end * 10)]
        part = assess(state, batch, [], THRESHOLDS)
        state = part.state
        findings += part.findings
        alerts += part.alerts
    assert (findings, alerts) == (whole.findings, whole.alerts)
    assert state == whole.state


def test_a_state_comes_back_from_disk_as_it_was(tmp_path: Path) -> None:
    rows = [
        window(
            number,
            f"GPU-{card}",
            xids=[79] if number > card else [],
            util_idle_share=0.5,
            util_falls=1,
            fb_used_p50=5000.0,
            ecc_sbe_last=number * 2.0,
        )
        for number in range(40)
        for card in range(3 if number < 20 else 2)
    ]
    state = assess(FleetState(), rows, [], THRESHOLDS).state
    assert state.standing
    StateStore(Lake(str(tmp_path))).save(7, state)
    assert StateStore(Lake(str(tmp_path))).after(7) == state


def test_an_empty_state_comes_back_too(tmp_path: Path) -> None:
    StateStore(Lake(str(tmp_path))).save(0, FleetState())
    assert StateStore(Lake(str(tmp_path))).after(0) == FleetState()


def test_old_states_are_swept_and_a_lost_one_says_what_to_do(tmp_path: Path) -> None:
    store = StateStore(Lake(str(tmp_path)))
    for batch_id in range(20):
        store.save(batch_id, FleetState())
    assert len(list((tmp_path / "_work" / "findings-gpus").iterdir())) == 10
    with pytest.raises(StateMissingError, match="start with an empty lake"):
        StateStore(Lake(str(tmp_path))).after(3)


def test_a_state_of_version_0_1_is_read_without_the_interval(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    state = assess(FleetState(), [window(0, "GPU-1", interval_s=30.0)], [], THRESHOLDS).state
    StateStore(lake).save(3, state)
    (file,) = (tmp_path / "_work" / "findings-gpus").glob("*.parquet")
    pq.write_table(pq.read_table(file).drop_columns(["interval_s"]), file)
    read = StateStore(lake).after(3).fleet.gpus["GPU-1"]
    assert (read.seen, read.interval_s) == (us(10), None)


def test_a_card_that_is_sampled_rarely_is_missing_later() -> None:
    rows = [window(number, "GPU-1") for number in range(100)]
    rows += [window(n, "GPU-2", interval_s=120.0, samples=1) for n in (0, 12, 24)]
    assert silence(assess(FleetState(), rows, [], THRESHOLDS)) == {"GPU-2": 100 - 24 - 24}


def test_windows_without_samples_do_not_keep_a_card_from_being_missing() -> None:
    rows = [window(number, "GPU-1") for number in range(30)]
    rows += [window(number, "GPU-2", samples=int(number == 0)) for number in range(20)]
    assert silence(assess(FleetState(), rows, [], THRESHOLDS)) == {"GPU-2": 30 - 6}


def test_one_sample_raises_no_alert_about_a_state() -> None:
    def parked(*numbers: int) -> list[Finding]:
        return [
            report(window(number, "GPU-1"), Name.PARKED_MEMORY, 1.0, "parked") for number in numbers
        ]

    rows = [window(number, "GPU-1", interval_s=30.0) for number in range(12)]
    assert assess(FleetState(), rows, parked(1, 2, 3), THRESHOLDS).alerts == []
    two = assess(FleetState(), rows, parked(1, 2, 3, 4), THRESHOLDS).alerts
    assert [(each.finding, each.state) for each in two][:1] == [("parked_memory", "raised")]
