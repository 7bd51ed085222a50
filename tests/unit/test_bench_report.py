"""Tests the report of the benchmark."""

from pathlib import Path

import pytest

from bench.display import describe
from bench.machine import load_text
from bench.metrics import BYTES, CPU, P99
from bench.report import BROKER_ROW, number, render, spread
from bench.results import Results, Sample, Summary

TITLES = {"barnabas": "Barnabas 0.1.0", "kafka": "Apache Kafka 4.3.0"}


def results(*samples: Sample) -> Results:
    return Results(facts={"machine": "a small one"}, titles=TITLES, samples=list(samples))


def produced(broker: str, *mb_per_s: float) -> list[Sample]:
    return [
        Sample(row="produce-1k", broker=broker, round=i, figures={"mb_per_s": value})
        for i, value in enumerate(mb_per_s, 1)
    ]


def lines_about(page: str, words: str) -> list[str]:
    return [line for line in page.splitlines() if words in line]


def test_a_row_shows_medians_spread_ratio_and_that_the_goal_is_met() -> None:
    found = results(*produced("barnabas", 300, 200, 250), *produced("kafka", 100, 90, 125))
    (line,) = lines_about(render(found), "payload a second")
    assert line == (
        "| 1 KB, client defaults | payload a second (MB/s) | 250 (200-300) | 100 (90.0-125) "
        "| 2.50x | ≥ 1.0x | yes |"
    )
    assert "**1 of 1 goals met.**" in render(found)


def test_a_goal_that_is_missed_is_reported_in_bold() -> None:
    found = results(*produced("barnabas", 50), *produced("kafka", 100))
    (line,) = lines_about(render(found), "payload a second")
    assert line.endswith("| 50.0 | 100 | 0.50x | ≥ 1.0x | **no** |")


def test_a_row_that_failed_says_why_and_misses_its_goal() -> None:
    failed = Sample(row="produce-1k", broker="barnabas", round=1, error="no ack for 15 s")
    page = render(results(failed, *produced("kafka", 100)))
    (line,) = lines_about(page, "payload a second")
    assert line.endswith("| failed | 100 |  | ≥ 1.0x | **no** |")
    assert "- `produce-1k` on Barnabas 0.1.0: no ack for 15 s" in page
    assert "**0 of 1 goals met.**" in page


def test_a_row_that_failed_in_one_round_is_marked() -> None:
    failed = Sample(row="produce-1k", broker="kafka", round=2, error="stalled")
    page = render(results(*produced("kafka", 100), failed))
    (line,) = lines_about(page, "payload a second")
    assert "| 100 † |" in line


def test_rows_that_were_not_run_are_not_shown() -> None:
    page = render(results(*produced("kafka", 100)))
    assert "## Produce" in page
    assert "## Consume" not in page
    assert "## Memory" not in page


def test_memory_and_start_up_have_their_own_table() -> None:
    figures = {"idle_mb": 40.0, "loaded_mb": 60.0, "fresh_ms": 200.0, "again_ms": 210.0}
    page = render(results(Sample(row=BROKER_ROW, broker="barnabas", round=1, figures=figures)))
    assert "| the broker | resident, idle (MB) | 40.0 |" in page


def test_goals_point_the_right_way() -> None:
    assert BYTES.meets_goal(1.0)
    assert not BYTES.meets_goal(0.99)
    assert P99.meets_goal(0.5)
    assert not P99.meets_goal(0.51)
    assert CPU.meets_goal(9.0) is None


@pytest.mark.parametrize(
    ("value", "text"), [(1234567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (0.118, "0.12")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_no_spread_where_all_rounds_agree() -> None:
    assert spread(Summary.of([5.0])) == "5.00"


def test_results_survive_their_file(tmp_path: Path) -> None:
    before = results(*produced("kafka", 100, 110))
    before.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == before


def test_the_screen_shows_a_line_a_sample() -> None:
    sample = Sample(row="produce-1k", broker="kafka", round=2, figures={"mb_per_s": 120.0})
    assert describe(sample).split() == ["2", "kafka", "produce-1k", "120", "MB/s"]


def test_a_busy_machine_is_named_beside_the_figures() -> None:
    assert load_text(0.1) == "0.10 (one-minute average)"
    assert "do not trust" in load_text(2.8)
