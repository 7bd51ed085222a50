"""ListTransactionsRequest and ListTransactionsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ListTransactionsRequest(Message):
    """List transactions request, versions 0-2, flexible from 0."""

    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "state_filters []string 0+",
        "producer_id_filters []int64 0+",
        "duration_filter int64 1+ default=-1",
        "transactional_id_pattern string 2+ nullable=2+ default=null",
    )

    def __init__(
        self,
        *,
        state_filters: list[str] = FRESH,
        producer_id_filters: list[int] = FRESH,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is FRESH else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is FRESH else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class TransactionState(Message):
    """Part of ListTransactionsResponse."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "transaction_state",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "transactional_id string 0+",
        "producer_id int64 0+",
        "transaction_state string 0+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    """List transactions response, versions 0-2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "unknown_state_filters []string 0+",
        "transaction_states []TransactionState 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = FRESH,
        transaction_states: list[TransactionState] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is FRESH else unknown_state_filters
        self.transaction_states: list[TransactionState] = [] if transaction_states is FRESH else transaction_states
