"""Tests that every kind of dirt comes beside clean messages, and can be identified."""

import hashlib
from collections import Counter

import pytest

from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.samples.readings import is_no_value
from barnabas.telemetry.samples.sample_messages import (
    Message,
    MessageError,
    Sample,
    Snapshot,
    content_type,
    decode,
)
from barnabas.telemetry.simulation import FleetSettings, simulate
from barnabas.telemetry.simulation.malformed_messages import HEADER, KINDS, Dirt

CLEAN = list(simulate(FleetSettings(gpus=16, duration_ms=60_000, late_host=False)).messages())
DAY_MS = 86_400_000


def mixed(seed: int = 5, share: float = 0.1) -> tuple[list[Message], Dirt]:
    dirt = Dirt(share, seed)
    return list(dirt.mixed(CLEAN)), dirt


def pieces() -> dict[str, list[tuple[Message, Message]]]:
    """Return each dirty message by kind, with the clean message before it."""
    messages, dirt = mixed()
    found: dict[str, list[tuple[Message, Message]]] = {}
    before = messages[0]
    for message in messages:
        number = dict(message.headers).get(HEADER)
        if number is None:
            before = message
        else:
            kind = dirt.labels[int(number)].kind
            found.setdefault(kind, []).append((before, message))
    return found


def test_the_clean_messages_are_all_there_in_order() -> None:
    messages, dirt = mixed()
    assert [each for each in messages if HEADER not in dict(each.headers)] == CLEAN
    assert len(dirt.labels) == pytest.approx(0.1 * len(CLEAN), rel=0.4)


def test_every_kind_is_there_about_as_often_and_from_the_seed() -> None:
    first, dirt = mixed()
    second, again = mixed()
    assert first == second
    assert dirt.labels == again.labels
    assert mixed(seed=6)[0] != first
    counts = Counter(each.kind for each in dirt.labels)
    assert set(counts) == set(KINDS)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_labels_find_their_piece() -> None:
    messages, dirt = mixed()
    for message in messages:
        number = dict(message.headers).get(HEADER)
        if number is not None:
            label = dirt.labels[int(number)]
            assert label.sha256 == hashlib.sha256(message.value).hexdigest()
            assert label.size_bytes == len(message.value)
            assert message.key == label.gpu_id.encode()


@pytest.mark.parametrize(
    "kind",
    [
        "bad_json",
        "not_utf8",
        "empty",
        "wrong_type",
        "missing_field",
        "bad_timestamp",
        "unknown_content_type",
        "huge_value",
    ],
)
def test_some_kinds_cannot_be_decoded(kind: str) -> None:
    for _, dirty in pieces()[kind]:
        with pytest.raises(MessageError):
            decode(dirty.value, content_type(dirty.headers))


def test_other_kinds_are_well_formed_and_wrong() -> None:
    found = pieces()
    for _, dirty in found["sentinel"]:
        sample = decode(dirty.value, content_type(dirty.headers))
        assert isinstance(sample, Sample)
        assert is_no_value(sample.value)
    for _, dirty in found["out_of_range"]:
        sample = decode(dirty.value, content_type(dirty.headers))
        assert isinstance(sample, Sample)
        assert not 0 <= sample.value <= 100
    for _, dirty in found["unknown_metric"]:
        sample = decode(dirty.value, content_type(dirty.headers))
        assert isinstance(sample, Sample)
        assert sample.metric_name not in BY_NAME
    assert all(len(dirty.value) > 1_000_000 for _, dirty in found["huge_value"])
    assert all(clean.value == dirty.value for clean, dirty in found["duplicate"])


def test_clocks_are_off_by_what_the_kind_says() -> None:
    found = pieces()
    for kind, low_ms, high_ms in (
        ("clock_ahead", 3_650 * DAY_MS, 3_651 * DAY_MS),
        ("clock_behind", -365 * DAY_MS, -364 * DAY_MS),
        ("late", -600_000, -590_000),
    ):
        for clean, dirty in found[kind]:
            before = decode(clean.value, content_type(clean.headers))
            after = decode(dirty.value, content_type(dirty.headers))
            assert isinstance(after, Snapshot)
            assert low_ms <= after.timestamp_ms - before.timestamp_ms <= high_ms
