"""Tests that messages survive a round trip, and that errors say what is no message."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.samples.sample_messages import (
    SAMPLE_TYPE,
    SNAPSHOT_TYPE,
    TICK_TYPE,
    Layout,
    MessageError,
    Sample,
    Snapshot,
    Tick,
    content_type,
    decode,
    encode,
    encode_sample,
    encode_snapshot,
    encode_tick,
    format_time,
    parse_time,
)

times = st.integers(min_value=-(2**41), max_value=2**47)
numbers = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
# A key is UTF-8, which cannot encode lone surrogates.
words = st.text(st.characters(exclude_categories=["Cs"]))
names = words.filter(bool)
labels = st.dictionaries(words, words, max_size=4)


@given(
    st.builds(
        Sample,
        timestamp_ms=times,
        metric_name=names,
        gpu_id=names,
        device=words,
        hostname=words,
        value=numbers,
        labels=labels,
    )
)
def test_samples_come_back(sample: Sample) -> None:
    key, value, headers = encode_sample(sample, "test")
    assert key == sample.gpu_id.encode()
    assert decode(value, content_type(headers)) == sample


@given(
    st.builds(
        Snapshot,
        timestamp_ms=times,
        gpu_id=names,
        device=words,
        hostname=words,
        model=words,
        labels=labels,
        metrics=st.dictionaries(names, numbers, max_size=6),
    )
)
def test_snapshots_come_back(snapshot: Snapshot) -> None:
    message = encode_snapshot(snapshot, "test")
    assert decode(message.value, content_type(message.headers)) == snapshot


@given(st.builds(Tick, timestamp_ms=times, hostname=words))
def test_ticks_come_back_and_have_no_key(tick: Tick) -> None:
    message = encode_tick(tick, "test")
    assert message.key is None
    assert json.loads(message.value)["tick"] is True
    assert decode(message.value, content_type(message.headers)) == tick


@given(times)
def test_times_come_back(timestamp_ms: int) -> None:
    assert parse_time(format_time(timestamp_ms)) == timestamp_ms


def test_a_sample_looks_as_agreed() -> None:
    snapshot = Snapshot(
        timestamp_ms=1_794_725_694_154,
        gpu_id="GPU-1",
        device="nvidia0",
        hostname="node-1",
        model="NVIDIA H200",
        labels={"pod": "train-0"},
        metrics={"DCGM_FI_DEV_GPU_UTIL": 98, "DCGM_FI_DEV_POWER_USAGE": 612.5},
    )
    first, second = encode(snapshot, Layout.SAMPLE, "csv")
    assert json.loads(first.value) == {
        "timestamp": "2026-11-15T06:54:54.154Z",
        "metric_name": "DCGM_FI_DEV_GPU_UTIL",
        "gpu_id": "GPU-1",
        "device": "nvidia0",
        "hostname": "node-1",
        "value": 98,
        "labels": {"pod": "train-0", "modelName": "NVIDIA H200"},
    }
    assert json.loads(second.value)["value"] == 612.5
    assert dict(first.headers) == {
        "source": b"csv",
        "version": b"1.0",
        "content-type": b"application/json",
    }
    (whole,) = encode(snapshot, Layout.SNAPSHOT, "csv")
    assert content_type(whole.headers) == SNAPSHOT_TYPE
    assert json.loads(whole.value)["model"] == "NVIDIA H200"


def test_without_a_content_type_it_is_a_sample() -> None:
    assert content_type([("source", b"x")]) == SAMPLE_TYPE


GOOD = {"timestamp": "2026-11-15T06:54:54Z", "metric_name": "M", "gpu_id": "GPU-1", "value": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"value": NaN}', "not a JSON number"),
        (b"[1]", "expected a JSON object, not list"),
        ({**GOOD, "value": "high"}, "value must be a number, not 'high'"),
        ({**GOOD, "value": True}, "value must be a number"),
        ({**GOOD, "value": None}, "value must be a number"),
        ({**GOOD, "gpu_id": 7}, "gpu_id must be text"),
        ({**GOOD, "gpu_id": ""}, "gpu_id is empty"),
        ({**GOOD, "timestamp": "yesterday"}, "not ISO 8601"),
        ({**GOOD, "timestamp": 17}, "timestamp must be text"),
        ({**GOOD, "labels": []}, "labels must be an object"),
        ({**GOOD, "labels": {"a": 1}}, "a must be text"),
        ({k: v for k, v in GOOD.items() if k != "value"}, "value is missing"),
        ({k: v for k, v in GOOD.items() if k != "gpu_id"}, "gpu_id is missing"),
    ],
)
def test_what_is_no_sample_says_why(body: bytes | dict[str, object], reason: str) -> None:
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(MessageError, match=reason):
        decode(value)


def test_other_layouts_say_why_too() -> None:
    with pytest.raises(MessageError, match="metrics is missing"):
        decode(json.dumps(GOOD).encode(), SNAPSHOT_TYPE)
    with pytest.raises(MessageError, match="U must be a number"):
        decode(json.dumps({**GOOD, "metrics": {"U": "x"}}).encode(), SNAPSHOT_TYPE)
    with pytest.raises(MessageError, match="timestamp is missing"):
        decode(b"{}", TICK_TYPE)
    with pytest.raises(MessageError, match="'text/plain' is not known"):
        decode(b"{}", "text/plain")


def test_numbers_that_json_does_not_have_are_not_written() -> None:
    sample = Sample(
        timestamp_ms=0, metric_name="M", gpu_id="G", device="", hostname="", value=math.nan
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_sample(sample, "test")
