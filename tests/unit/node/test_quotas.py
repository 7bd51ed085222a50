"""Buckets of bytes: how much a client id may use, and for how long it pauses after that."""

import pytest

from barnabas.node import quotas
from barnabas.node.quotas import Quota

RATE = 1_000


def test_what_was_saved_up_may_be_used_at_once() -> None:
    quota = Quota(RATE)
    assert quota.use("a", RATE, 0) == 0
    assert quota.use("a", 500, 0) == 501
    assert quota.debt_ms("a", 0) == 501


def test_a_debt_is_over_when_its_time_is() -> None:
    quota = Quota(RATE)
    pause_ms = quota.use("a", 3 * RATE, 0)
    assert quota.debt_ms("a", pause_ms - 2) > 0
    assert quota.debt_ms("a", pause_ms) == 0


def test_no_more_than_a_second_is_saved_up() -> None:
    quota = Quota(RATE)
    quota.use("a", 1, 0)
    assert quota.use("a", RATE, 3_600_000) == 0
    assert quota.use("a", 1, 3_600_000) > 0


def test_client_ids_do_not_share_a_bucket() -> None:
    quota = Quota(RATE)
    quota.use("a", 10 * RATE, 0)
    assert quota.debt_ms("b", 0) == 0
    assert quota.debt_ms(None, 0) == 0


def test_a_rate_of_0_limits_nothing() -> None:
    quota = Quota(0)
    assert not quota.limits
    assert quota.use("a", 1 << 40, 0) == quota.debt_ms("a", 0) == 0


def test_many_client_ids_do_not_make_a_debt_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "BUCKETS_MAX", 10)
    quota = Quota(RATE)
    quota.use("debtor", 100 * RATE, 0)
    for number in range(50):
        quota.use(f"client {number}", 1, number)
        quota.use("debtor", 1, number)
    assert quota.debt_ms("debtor", 50) > 90_000
    assert len(quota._buckets) == 10
