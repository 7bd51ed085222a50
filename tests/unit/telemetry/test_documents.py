"""Tests messages to rows, without Spark."""

import json

import numpy as np
import pytest

from barnabas.telemetry.samples import documents
from barnabas.telemetry.samples.metrics import COLUMNS

GPU = "GPU-1"
TIME = "2026-11-15T07:00:00.250Z"
TIME_US = 1_794_726_000_250_000
UTIL = "DCGM_FI_DEV_GPU_UTIL"
POWER = "DCGM_FI_DEV_POWER_USAGE"


def snapshot(**changes: object) -> bytes:
    document = {"timestamp": TIME, "gpu_id": GPU, "metrics": {UTIL: 98, POWER: 650.5}, **changes}
    return json.dumps({k: v for k, v in document.items() if v is not ...}).encode()


def sample(**changes: object) -> bytes:
    document = {"timestamp": TIME, "gpu_id": GPU, "metric_name": UTIL, "value": 98, **changes}
    return json.dumps({k: v for k, v in document.items() if v is not ...}).encode()


def read(*values: bytes | None) -> documents.Readings:
    return documents.read(values, 10_000)


def row(found: documents.Readings, index: int = 0) -> dict[str, float]:
    named = zip(COLUMNS, found.values[index].tolist(), strict=True)
    return {name: value for name, value in named if not np.isnan(value)}


def test_snapshot() -> None:
    found = read(snapshot(hostname="a", labels={"modelName": "H200", "pod": "p"}))
    assert row(found) == {"gpu_util": 98, "power_usage": 650.5}
    assert found.time_us.tolist() == [TIME_US]
    assert {name: texts[0] for name, texts in found.identity.items()} == {
        "gpu_id": GPU,
        "instance": None,
        "profile": None,
        "hostname": "a",
        "device": None,
        "model": "H200",
        "namespace": None,
        "pod": "p",
        "container": None,
    }
    assert found.faults == {}


def test_sample_is_a_snapshot_of_one() -> None:
    found = read(sample(), sample(metric_name=POWER, value=650.5))
    assert [row(found, 0), row(found, 1)] == [{"gpu_util": 98}, {"power_usage": 650.5}]


def test_both_spellings_of_labels() -> None:
    new = read(snapshot(model="H200", hostname="a"))
    old = read(snapshot(labels={"modelName": "H200", "Hostname": "a"}))
    assert new.identity == old.identity


def test_older_names_of_a_metric() -> None:
    found = read(snapshot(metrics={"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 4}))
    assert row(found) == {"clock_reasons": 4}


def test_tick_is_no_row() -> None:
    found = read(json.dumps({"timestamp": TIME, "hostname": "a", "tick": True}).encode())
    assert found.ticks_us.tolist() == [TIME_US]
    assert len(found.message) == 0
    assert found.faults == {}


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (None, "bad-json", "the message has no value"),
        (b"", "bad-json", "not JSON"),
        (b"{", "bad-json", "not JSON"),
        (b"\xff\xfe", "bad-json", "not JSON"),
        (b'{"value": NaN}', "bad-json", "not JSON"),
        (b"[" * 9_000, "bad-json", "not JSON"),
        (b"[1, 2]", "not-an-object", "expected a JSON object, not list"),
        (b"17", "not-an-object", "expected a JSON object, not int"),
        (b"{}", "unknown-layout", "the message has neither metric_name nor metrics nor tick"),
        (b" " * 10_001, "too-large", "10001 bytes are more than the 10000 allowed"),
        (snapshot(gpu_id=...), "missing-field", "gpu_id is missing"),
        (snapshot(gpu_id=""), "missing-field", "gpu_id is missing"),
        (snapshot(gpu_id=7), "bad-field", "gpu_id must be text of at most 256 characters"),
        (snapshot(gpu_id="x" * 257), "bad-field", "gpu_id must be text"),
        (snapshot(labels="none"), "bad-field", "labels must be an object"),
        (snapshot(timestamp=...), "missing-field", "timestamp is missing"),
        (snapshot(timestamp=TIME_US), "bad-timestamp", "timestamp must be text, not 17947"),
        (snapshot(timestamp="soon"), "bad-timestamp", "timestamp 'soon' is not ISO 8601"),
        (snapshot(metrics=[1]), "bad-field", "metrics must be an object"),
        (snapshot(metrics={}), "missing-field", "no metric has a value"),
        (sample(metric_name=...), "missing-field", "metric_name is missing"),
        (sample(metric_name=5), "bad-field", "metric_name must be text"),
        (sample(value=...), "missing-field", "value is missing"),
        (sample(value=None), "missing-field", "no metric has a value"),
        (sample(value="hot"), "wrong-type", f'{UTIL} is "hot", not a number'),
        (sample(value=True), "wrong-type", f"{UTIL} is true, not a number"),
        (sample(value=[1]), "wrong-type", f"{UTIL} is [1], not a number"),
        (sample(value=101), "out-of-range", f"{UTIL} is 101, outside 0 to 100 %"),
        (sample(value=9223372036854775794), "no-value", f"{UTIL} has DCGM's mark for no value"),
        (sample(value=2147483632), "no-value", f"{UTIL} has DCGM's mark for no value"),
        (sample(value=140737488355328.0), "no-value", f"{UTIL} has DCGM's mark for no value"),
        (sample(metric_name="NEW"), "unknown-metric", "metric 'NEW' is not known"),
    ],
)
def test_refused_as_a_whole(value: bytes | None, reason: str, detail: str) -> None:
    found = read(value)
    assert len(found.message) == 0
    [fault] = found.faults[0]
    assert fault.reason.value == reason
    assert fault.detail.startswith(detail)


def test_bad_values_do_not_spoil_the_rest() -> None:
    bad = {UTIL: 98, POWER: "x", "DCGM_FI_DEV_GPU_TEMP": 999, "NEW": 1}
    found = read(snapshot(), snapshot(metrics=bad), snapshot())
    assert row(found, 1) == {"gpu_util": 98}
    assert [fault.reason.value for fault in found.faults[1]] == [
        "unknown-metric",
        "wrong-type",
        "out-of-range",
    ]
    assert row(found, 0) == row(found, 2) == {"gpu_util": 98, "power_usage": 650.5}


def test_large_counters_are_values() -> None:
    found = read(snapshot(metrics={"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 2147483640}))
    assert row(found) == {"energy": 2147483640}


def test_rows_know_their_messages() -> None:
    found = read(b"{", snapshot(), b"[]", snapshot(gpu_id="GPU-2"))
    assert found.message.tolist() == [1, 3]
    assert found.identity["gpu_id"] == ["GPU-1", "GPU-2"]
