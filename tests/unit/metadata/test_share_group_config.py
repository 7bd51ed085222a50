"""Tests the configs of share groups: defaults, bounds, and what is in effect."""

from dataclasses import replace

import pytest

from barnabas.metadata import share_group_config
from barnabas.metadata.share_group_config import OffsetReset, Reset, check, resolve
from barnabas.model.dead_letter_rules import DeadLetterRules
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import ShareSettings

SETTINGS = ShareSettings()


def test_a_group_without_configs_has_those_of_the_broker() -> None:
    found = resolve({}, SETTINGS)
    assert found.offset_reset == OffsetReset(Reset.LATEST)
    assert (found.read_committed, found.renew_enabled) == (False, True)
    assert (found.record_lock_duration_ms, found.delivery_count_limit) == (30_000, 5)
    assert found.partition_max_record_locks == 2_000
    assert (found.session_timeout_ms, found.heartbeat_interval_ms) == (45_000, 5_000)
    other = replace(SETTINGS, record_lock_duration_ms=1_000, delivery_count_limit=3)
    assert resolve({}, other).record_lock_duration_ms == 1_000
    assert resolve({}, other).delivery_count_limit == 3


def test_a_groups_own_configs_count() -> None:
    own = {
        "share.auto.offset.reset": "by_duration:P1DT2H",
        "share.isolation.level": "read_committed",
        "share.record.lock.duration.ms": "60000",
        "share.delivery.count.limit": "10",
        "share.partition.max.record.locks": "100",
        "share.renew.acknowledge.enable": "FALSE",
        "share.session.timeout.ms": "60000",
        "share.heartbeat.interval.ms": "15000",
    }
    check(own, SETTINGS)
    found = resolve(own, SETTINGS)
    assert found.offset_reset == OffsetReset(Reset.BY_DURATION, 26 * 3_600_000)
    assert (found.read_committed, found.renew_enabled) == (True, False)
    assert (found.record_lock_duration_ms, found.delivery_count_limit) == (60_000, 10)
    assert found.partition_max_record_locks == 100
    assert (found.session_timeout_ms, found.heartbeat_interval_ms) == (60_000, 15_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.auto.offset.reset", "none"),
        ("share.auto.offset.reset", "by_duration:"),
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.auto.offset.reset", "by_duration:PT-1H"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.record.lock.duration.ms", "14999"),
        ("share.record.lock.duration.ms", "60001"),
        ("share.delivery.count.limit", "1"),
        ("share.delivery.count.limit", "11"),
        ("share.partition.max.record.locks", "99"),
        ("share.partition.max.record.locks", "4001"),
        ("share.renew.acknowledge.enable", "maybe"),
        ("share.session.timeout.ms", "44999"),
        ("share.heartbeat.interval.ms", "15001"),
        ("share.heartbeat.interval.ms", "x"),
        ("errors.deadletterqueue.topic.name", "orders"),
        ("errors.deadletterqueue.topic.name", "__dlq"),
        ("errors.deadletterqueue.copy.record.enable", "maybe"),
        ("errors.deadletterqueue.records.per.minute", "-1"),
        ("retention.ms", "1"),
    ],
)
def test_what_a_group_may_not_have(name: str, value: str) -> None:
    with pytest.raises(ApiError) as caught:
        check({name: value}, SETTINGS)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert name in caught.value.message


def test_the_settings_of_the_broker_move_the_bounds() -> None:
    lenient = replace(SETTINGS, min_record_lock_duration_ms=1_000)
    check({"share.record.lock.duration.ms": "1000"}, lenient)
    stored = {"share.record.lock.duration.ms": "1000", "share.delivery.count.limit": "99"}
    found = resolve(stored, SETTINGS)
    assert (found.record_lock_duration_ms, found.delivery_count_limit) == (15_000, 10)


def test_a_session_is_longer_than_a_heartbeat_interval() -> None:
    short = replace(SETTINGS, session_timeout_ms=10_000)
    with pytest.raises(ApiError) as caught:
        check({"share.heartbeat.interval.ms": "10000"}, short)
    assert "greater than" in caught.value.message


def test_a_value_that_this_release_cannot_read_is_the_default() -> None:
    later = {"share.auto.offset.reset": "nearest", "share.delivery.count.limit": "many"}
    assert resolve(later, SETTINGS) == resolve({}, SETTINGS)


def test_defaults_are_those_of_the_definitions() -> None:
    defaults = {name: known.default for name, known in share_group_config.DEFINITIONS.items()}
    check(defaults, SETTINGS)
    assert resolve(defaults, SETTINGS) == resolve({}, SETTINGS)


def test_a_group_with_dead_letters() -> None:
    configs = {
        "errors.deadletterqueue.topic.name": "dlq.orders",
        "errors.deadletterqueue.copy.record.enable": "FALSE",
        "errors.deadletterqueue.records.per.minute": "100",
    }
    check(configs, SETTINGS)
    assert resolve(configs, SETTINGS).dead_letters == DeadLetterRules("dlq.orders", False, 100)
    assert resolve({}, SETTINGS).dead_letters is None
    check({"errors.deadletterqueue.topic.name": ""}, SETTINGS)
