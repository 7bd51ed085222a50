"""Tests wrong clocks: measured in silver, reported once windows are closed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.telemetry.findings import skew
from barnabas.telemetry.findings.assessment import FleetState, assess
from barnabas.telemetry.findings.finding import Window
from barnabas.telemetry.findings.skew import Skew
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import Lake, arrow_schema
from barnabas.telemetry.samples.duplicates import Seen
from barnabas.telemetry.samples.sample_validation import Rules, Validated, validate

NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
NOW_US = int(NOW.timestamp()) * 1_000_000
SECOND = 1_000_000
RULES = Rules(
    late_before_us=NOW_US - 60 * SECOND,
    late_us=60 * SECOND,
    ahead_us=30 * SECOND,
    tick_ahead_us=300 * SECOND,
    value_bytes_max=10_000,
)
END = NOW_US + 10 * SECOND


def validated(*messages: tuple[str, float, float]) -> Validated:
    """Validate messages: a card, its clock and the broker's, in seconds from now."""
    rows = []
    for offset, (gpu, sent, arrived) in enumerate(messages):
        text = (NOW + timedelta(seconds=sent)).isoformat()
        metrics = {"DCGM_FI_DEV_GPU_UTIL": 5}
        body = {"timestamp": text, "gpu_id": gpu, "hostname": "h", "metrics": metrics}
        moment = NOW + timedelta(seconds=arrived)
        rows.append(
            {
                "key": gpu.encode(),
                "value": json.dumps(body).encode(),
                "headers": [],
                "topic": "t",
                "partition": 0,
                "offset": offset,
                "timestamp": moment,
            }
        )
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(lake_tables.BRONZE))
    return validate(batch, RULES, Seen(), {})


def test_a_clock_that_is_behind() -> None:
    found = validated(("a", 0, 0), ("b", -70, 0), ("a", 5, 5), ("b", -65, 5))
    assert found.skews == [Skew("b", "h", None, None, END, -70.0, 2, 2)]
    assert found.skews[0].detail == (
        "its clock is 70 s behind the broker's: 2 samples were refused"
    )


def test_in_a_replay_the_fleet_is_the_clock() -> None:
    found = validated(("a", 0, 9000), ("b", -70, 9000))
    assert found.skews == [Skew("b", "h", None, None, END, -70.0, 1, 1)]


@pytest.mark.parametrize(("ahead", "refused"), [(45, 1), (20, 0)])
def test_a_clock_that_is_ahead(ahead: int, refused: int) -> None:
    found = validated(("a", 0, 0), ("b", ahead, 0))
    assert found.skews == [Skew("b", "h", None, None, END, ahead, 1, refused)]
    assert f"{ahead} s ahead of" in found.skews[0].detail


def test_synchronous_clocks_are_not_reported() -> None:
    assert validated(("a", 0, 0), ("b", 4, 0), ("c", -50, 0)).skews == []


def test_a_card_with_other_samples_in_time_is_not_ahead() -> None:
    assert validated(("b", 0, 0), ("b", 20, 0)).skews == []


def test_samples_that_waited_for_their_collector_are_no_wrong_clock() -> None:
    waited = [("b", float(-300 + 30 * n), 1.0) for n in range(8)]
    found = validated(("a", 0, 0), *waited)
    assert len(found.faults) == 8
    assert found.skews == []


def test_parts_of_a_batch_are_merged_and_stay_within_event_time() -> None:
    one = Skew("b", "h", None, None, END, -70.0, 1, 1)
    later = one._replace(window_end=END + 50 * SECOND, skew_s=-71.0, samples=3, refused=3)
    parts = [json.loads(json.dumps([one])), json.loads(json.dumps([later]))]
    assert skew.merged(parts, NOW_US) == [one._replace(skew_s=-71.0, samples=4, refused=4)]
    assert len(skew.merged(parts, END + 60 * SECOND)) == 2
    many = [one._replace(gpu_id=f"{n}") for n in range(skew.SKEWS_MAX + 5)]
    assert len(skew.merged([many], NOW_US)) == skew.SKEWS_MAX


def test_a_backlog_of_many_windows_names_every_card() -> None:
    """Five hosts with a wrong clock, and two and a half hours of samples in one batch."""
    cards, windows = 40, 300
    parts = [
        [
            Skew(
                f"GPU-{card:02}",
                f"node-{card // 8}",
                None,
                None,
                END - 10 * SECOND * n,
                -70.0,
                1,
                1,
            )
            for card in range(cards)
        ]
        for n in range(windows)
    ]
    found = skew.merged(parts, END)
    assert len(found) <= skew.SKEWS_MAX
    assert {each.gpu_id for each in found} == {f"GPU-{card:02}" for card in range(cards)}
    assert sum(each.refused for each in found) == cards * windows
    assert {each.skew_s for each in found} == {-70.0}


def test_skews_come_with_the_window_that_closes_them(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    ends = [END + n * 10 * SECOND for n in range(20)]
    for batch, end in enumerate(ends):
        entry = Skew("b", "h", None, None, end, -70.0, 1, 1)
        note = {"query": "q", "batch": batch, "event_us": end - 1, "skews": [entry]}
        lake.complete("silver", note, [])
    first, state = skew.due(lake, None, ends[:3])
    assert [each.window_end for each in first] == ends[:3]
    again, same = skew.due(lake, None, ends[:3])
    assert (again, same) == (first, state)
    nothing, state = skew.due(lake, state, [])
    assert nothing == []
    # No window of the fleet ended at ends[3]: the next one reports it.
    rest, _ = skew.due(lake, state, ends[4:7])
    assert [each.window_end for each in rest] == [ends[4], ends[4], ends[5], ends[6]]


def findings_and_alerts(
    *skewed: tuple[int, str], cards: str = "a", windows: int = 12
) -> list[tuple[str, str]]:
    """Return findings and alerts about card b, of windows in which some clocks were wrong."""
    state = FleetState()
    found: list[tuple[str, str]] = []
    for n in range(windows):
        end = END + n * 10 * SECOND
        rows = [Window(end - 10 * SECOND, end, gpu, "h", samples=1) for gpu in cards]
        skews = [Skew(gpu, "h", None, None, end, -70.0, 1, 1) for at, gpu in skewed if at == n]
        after = assess(state, rows, [], Thresholds(), skews)
        state = after.state
        found += [("finding", each.finding) for each in after.findings if each.gpu_id == "b"]
        found += [(each.state, each.finding) for each in after.alerts if each.gpu_id == "b"]
    return found


def test_a_card_that_was_never_in_time_is_found_and_alerted() -> None:
    assert findings_and_alerts((0, "b"), (3, "b"), (6, "b")) == [
        ("finding", "clock_skew"),
        ("finding", "clock_skew"),
        ("raised", "clock_skew"),
        ("finding", "clock_skew"),
    ]


def test_a_card_that_is_in_time_has_a_right_clock() -> None:
    assert findings_and_alerts((0, "b"), (3, "b"), cards="ab") == []


def test_a_card_whose_clock_is_wrong_is_not_missing() -> None:
    state = FleetState()
    names = []
    for n in range(30):
        end = END + n * 10 * SECOND
        cards = "ab" if n == 0 else "a"
        rows = [Window(end - 10 * SECOND, end, gpu, "h", samples=1) for gpu in cards]
        skews = [Skew("b", "h", None, None, end, -70.0, 1, 1)] if 0 < n < 20 else []
        after = assess(state, rows, [], Thresholds(), skews)
        state = after.state
        names += [each.finding for each in after.findings if each.gpu_id == "b"]
    assert names[0] == "clock_skew"
    assert names.index("missing") > names.count("clock_skew") - 1
    assert set(names) == {"clock_skew", "missing"}
