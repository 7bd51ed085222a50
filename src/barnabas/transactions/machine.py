"""Stub: to be written."""

from barnabas.model.coordination import CoordinatorRecord, ProducerIdAndEpoch, Scheduler
from barnabas.model.settings import TransactionSettings


class TransactionMachine:
    """Stub."""

    def __init__(self, settings: TransactionSettings, scheduler: Scheduler) -> None:
        self._settings = settings

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Take in a record."""

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Take in the end of a transaction: there are none in this topic."""

    def loaded(self) -> None:
        """Finish what was under way."""
