"""Tests MIG instances: their cards, in messages and in the rows of silver."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa
import pytest

from barnabas.telemetry.collect.long_csv import parse_rows
from barnabas.telemetry.jobs.silver import latest_messages
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.samples import mig
from barnabas.telemetry.samples.duplicates import Seen
from barnabas.telemetry.samples.readings import Tally, by_instant
from barnabas.telemetry.samples.sample_messages import Snapshot
from barnabas.telemetry.samples.sample_validation import Rules, Validated, validate

TIME = "2026-11-15T07:00:00Z"
RULES = Rules(
    late_before_us=None, late_us=60_000_000, ahead_us=0, tick_ahead_us=0, value_bytes_max=10_000
)


def labels(instance: int, **more: str) -> dict[str, str]:
    return {"GPU_I_ID": str(instance), "GPU_I_PROFILE": "1g.10gb", **more}


def validated(*documents: dict[str, Any], seen: Seen | None = None) -> Validated:
    rows = [
        {
            "key": b"GPU-1",
            "value": orjson.dumps({"timestamp": TIME, "gpu_id": "GPU-1", **each}),
            "headers": [],
            "topic": "t",
            "partition": 0,
            "offset": offset,
            "timestamp": datetime.fromisoformat(TIME).astimezone(UTC),
        }
        for offset, each in enumerate(documents)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(lake_tables.BRONZE))
    return validate(batch, RULES, seen or Seen(), {})


@pytest.mark.parametrize(
    ("gpu_id", "given", "expected"),
    [
        ("GPU-1", {}, ("GPU-1", None, None)),
        ("GPU-1", {"pod": "p"}, ("GPU-1", None, None)),
        ("GPU-1", labels(7), ("GPU-1", "7", "1g.10gb")),
        ("GPU-1/7", labels(7), ("GPU-1", "7", "1g.10gb")),
        ("GPU-1", {"mig_instance": "3", "mig_profile": "2g.20gb"}, ("GPU-1", "3", "2g.20gb")),
        ("GPU-1", {"mig": "4"}, ("GPU-1", "4", None)),
        ("GPU-1", {"mig": "Enabled"}, ("GPU-1", None, None)),
        ("MIG-GPU-1/5/0", {}, ("GPU-1", "5", None)),
        ("GPU-1/9", {}, ("GPU-1/9", None, None)),
    ],
)
def test_place(gpu_id: str, given: dict[str, str], expected: tuple[str, ...]) -> None:
    assert mig.place(gpu_id, given) == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [("1g.10gb", 1), ("1c.3g.40gb", 3), ("1g.10gb+me", 1), ("MIG 2g.20gb", 2), ("", None)],
)
def test_slices(profile: str, expected: int | None) -> None:
    assert mig.slices(profile) == expected


def test_instances_are_rows_of_their_card_and_no_duplicates() -> None:
    util = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.5}
    seven = [{"metrics": util, "labels": labels(number)} for number in range(7)]
    seen = Seen()
    found = validated(*seven, {"metrics": util}, seen=seen)
    assert found.faults == {}
    assert found.rows["gpu_id"].to_pylist() == ["GPU-1"] * 8
    assert found.rows["instance"].to_pylist() == ["0", "1", "2", "3", "4", "5", "6", None]
    assert found.rows["profile"].to_pylist() == ["1g.10gb"] * 7 + [None]
    again = validated(*seven, seen=seen)
    assert [fault.reason for faults in again.faults.values() for fault in faults] == [
        "duplicate"
    ] * 7


def test_the_latest_state_of_an_instance_has_its_own_key() -> None:
    found = validated({"metrics": {"DCGM_FI_DEV_FB_USED": 5}, "labels": labels(7)}, {"metrics": {
        "DCGM_FI_DEV_FB_USED": 9, "DCGM_FI_DEV_FB_RESERVED": 1}})  # fmt: skip
    messages = latest_messages(found.rows)
    assert messages["key"].to_pylist() == [b"GPU-1/7", b"GPU-1"]
    first, second = map(orjson.loads, messages["value"].to_pylist())
    assert (first["instance"], first["fb_used"]) == ("7", 5)
    assert second["other"] == {"DCGM_FI_DEV_FB_RESERVED": 1}
    assert "instance" not in second


def test_long_csv_has_a_column_for_the_instance() -> None:
    lines = [
        "timestamp,metric_name,uuid,GPU_I_ID,GPU_I_PROFILE,value",
        f"{TIME},DCGM_FI_DEV_FB_USED,GPU-1,7,1g.10gb,5",
        f"{TIME},DCGM_FI_DEV_FB_USED,GPU-1,8,1g.10gb,6",
        f"{TIME},DCGM_FI_DEV_FB_FREE,GPU-1,7,1g.10gb,9",
    ]
    rows = parse_rows(enumerate(lines, 1), where="f", hostname="h", tally=Tally())
    first, second = by_instant(rows)
    assert isinstance(first, Snapshot)
    assert isinstance(second, Snapshot)
    assert first.metrics == {"DCGM_FI_DEV_FB_USED": 5, "DCGM_FI_DEV_FB_FREE": 9}
    assert (second.gpu_id, second.labels["GPU_I_ID"]) == ("GPU-1", "8")
