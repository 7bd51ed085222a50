"""Tests long CSV, one row per metric."""

import pytest

from barnabas.telemetry.collect.long_csv import HeaderError, parse_rows
from barnabas.telemetry.samples.readings import Refusal, Tally, by_instant
from barnabas.telemetry.samples.sample_messages import Snapshot

HEADER = (
    "timestamp,metric_name,gpu_id,device,uuid,modelName,Hostname,container,pod,namespace,value,"
    "labels_raw"
)
RAW = (
    '"DCGM_FI_DRIVER_VERSION=""535.129.03"",Hostname=""node-a"",UUID=""GPU-1"",'
    '__name__=""DCGM_FI_DEV_GPU_UTIL"",device=""nvidia3"",gpu=""3"",pod=""train-0"""'
)


def row(metric: str, value: str, uuid: str = "GPU-1", at: str = "2025-07-18T20:42:34Z") -> str:
    return f"{at},{metric},3,nvidia3,{uuid},NVIDIA H100,node-a,,,,{value},"


def read(*rows: str, tally: Tally | None = None) -> list[Snapshot | Refusal]:
    lines = enumerate([HEADER, *rows], 1)
    return list(parse_rows(lines, where="d.csv", hostname="here", tally=tally or Tally()))


def test_labels_are_taken_from_columns_and_from_the_raw_text() -> None:
    (found,) = read(f"2025-07-18T20:42:34Z,DCGM_FI_DEV_GPU_UTIL,,,,NVIDIA H100,,,,,97,{RAW}")
    assert isinstance(found, Snapshot)
    assert (found.gpu_id, found.device, found.hostname) == ("GPU-1", "nvidia3", "node-a")
    assert found.model == "NVIDIA H100"
    assert found.timestamp_ms == 1_752_871_354_000
    assert found.labels["pod"] == "train-0"
    assert found.labels["DCGM_FI_DRIVER_VERSION"] == "535.129.03"
    assert found.metrics == {"DCGM_FI_DEV_GPU_UTIL": 97}


def test_an_instant_becomes_one_snapshot_a_card() -> None:
    rows = [
        row("DCGM_FI_DEV_GPU_UTIL", "97"),
        row("DCGM_FI_DEV_GPU_UTIL", "5", "GPU-2"),
        row("DCGM_FI_DEV_POWER_USAGE", "512.5"),
        row("DCGM_FI_DEV_GPU_UTIL", "96", at="2025-07-18T20:43:04Z"),
    ]
    found = [each for each in by_instant(read(*rows)) if isinstance(each, Snapshot)]
    assert [(each.gpu_id, dict(each.metrics)) for each in found] == [
        ("GPU-1", {"DCGM_FI_DEV_GPU_UTIL": 97, "DCGM_FI_DEV_POWER_USAGE": 512.5}),
        ("GPU-2", {"DCGM_FI_DEV_GPU_UTIL": 5}),
        ("GPU-1", {"DCGM_FI_DEV_GPU_UTIL": 96}),
    ]


def test_blank_numbers_are_counted_and_left_out() -> None:
    tally = Tally()
    assert read(row("M", "9223372036854775794"), row("M", "2147483632"), tally=tally) == []
    assert tally.no_value == 2


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row("M", "high"), "value 'high' is not a number"),
        (row("M", "inf"), "value 'inf' is not a number"),
        (row("M", "1", at="yesterday"), "timestamp 'yesterday' is not ISO 8601"),
        (row("", "1"), "metric_name is empty"),
        (row("M", "1", uuid=""), "no label UUID"),
        ("2025-07-18T20:42:34Z,M,3", "3 cells, the header has 12"),
        (f"{row('M', '1')}nonsense", "Invalid labels"),
    ],
)
def test_a_bad_row_is_refused(bad: str, reason: str) -> None:
    first, refusal, last = read(row("M", "1"), bad, row("M", "2"))
    assert isinstance(first, Snapshot)
    assert isinstance(last, Snapshot)
    assert isinstance(refusal, Refusal)
    assert refusal.where == "d.csv line 3"
    assert reason in refusal.reason


def test_another_header_is_refused() -> None:
    with pytest.raises(HeaderError, match="no timestamp, metric_name, value"):
        list(parse_rows([(1, "a,b\n")], where="d.csv", hostname="", tally=Tally()))
