"""Tests that fetches for catching up are delayed."""

from barnabas.replication.throttle import Throttle


def test_without_a_limit_no_client_waits() -> None:
    throttle = Throttle(0)
    throttle.use(1 << 40, 0)
    assert throttle.delay_ms(0) == 0


def test_what_came_is_paid_for_before_more_is_asked_for() -> None:
    throttle = Throttle(1_000)
    assert throttle.delay_ms(5_000) == 0
    throttle.use(500, 5_000)
    throttle.use(1_000, 5_000)
    assert throttle.delay_ms(5_000) == 1_500
    assert throttle.delay_ms(6_400) == 100
    assert throttle.delay_ms(9_000) == 0


def test_time_in_which_nothing_came_is_not_saved_up() -> None:
    throttle = Throttle(1_000)
    throttle.use(100, 0)
    throttle.use(1_000, 60_000)
    assert throttle.delay_ms(60_000) == 1_000


def test_another_rate_starts_again() -> None:
    throttle = Throttle(1)
    throttle.use(1_000_000, 0)
    throttle.limit(1_000)
    assert throttle.delay_ms(0) == 0
    throttle.use(500, 0)
    throttle.limit(1_000)
    assert throttle.delay_ms(0) == 500
    throttle.limit(0)
    assert throttle.delay_ms(0) == 0
