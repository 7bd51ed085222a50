"""Tests which open transactions hang, and how they are ended."""

import pytest

from barnabas.admin.transaction_admin import Hanging, OpenTransaction, Transaction, why_hanging

NOW_MS = 1_000_000
PATIENCE_MS = 60_000
TIMEOUT_MS = 10_000


def opened(idle_ms: int) -> OpenTransaction:
    return OpenTransaction(
        topic="orders",
        partition=0,
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=-1,
        start_offset=42,
        last_write_ms=NOW_MS - idle_ms,
    )


def known(state: str, age_ms: int | None, *partitions: int) -> Transaction:
    return Transaction(
        transactional_id="billing",
        coordinator=1,
        state=state,
        producer_id=7,
        producer_epoch=1,
        timeout_ms=TIMEOUT_MS,
        started_ms=None if age_ms is None else NOW_MS - age_ms,
        partitions=[("orders", number) for number in partitions],
    )


@pytest.mark.parametrize(
    ("idle_ms", "transaction", "reason"),
    [
        (PATIENCE_MS, None, None),
        (PATIENCE_MS + 1, None, "no coordinator knows its producer"),
        (1, known("Ongoing", TIMEOUT_MS, 0, 1), None),
        (1, known("Ongoing", TIMEOUT_MS + 1, 0, 1), "Ongoing, and past its timeout"),
        (1, known("PrepareAbort", TIMEOUT_MS + 1, 0), "PrepareAbort, and past its timeout"),
        (TIMEOUT_MS + 1, known("Ongoing", 5, 0), None),
        (TIMEOUT_MS, known("Ongoing", 5, 1), None),
        (TIMEOUT_MS + 1, known("Ongoing", 5, 1), "its coordinator does not know it"),
        (TIMEOUT_MS + 1, known("CompleteAbort", None), "its coordinator does not know it"),
    ],
)
def test_hanging_is_to_be_open_past_all_timeouts(
    idle_ms: int, transaction: Transaction | None, reason: str | None
) -> None:
    assert why_hanging(opened(idle_ms), transaction, NOW_MS, PATIENCE_MS) == reason


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("Ongoing", "billing"),
        ("PrepareAbort", "orders:0 --start-offset 42"),
        (None, "orders:0 --start-offset 42"),
    ],
)
def test_a_coordinator_that_can_still_abort_is_asked_to(state: str | None, remedy: str) -> None:
    found = Hanging(
        open=opened(1), transactional_id="billing", state=state, idle_ms=1, reason="why"
    )
    assert found.remedy == remedy
    assert found.as_json()["start_offset"] == 42
