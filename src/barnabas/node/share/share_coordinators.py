"""Runs one operation on many share partitions whose coordinators are on this broker.

The share partitions of one coordinator go into one operation, so its records are one batch. Each
share partition gets its own result; if a coordinator refuses, all of its share partitions do.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.node.coordination.coordinator_set import CoordinatorSet
from barnabas.share.share_state_machine import Results, ShareStateMachine

Q = TypeVar("Q")
R = TypeVar("R")

ShareCoordinators = CoordinatorSet[ShareStateMachine]
Items = Mapping[SharePartitionKey, Q]
Operation = Callable[[ShareStateMachine, Items[Q]], Outcome[Results[R]]]


def run_on_each(
    coordinators: ShareCoordinators, items: Items[Q], operation: Operation[Q, R]
) -> Pending[Results[R]]:
    """Run an operation on the coordinators of all items; answer once all have answered."""
    by_partition: dict[int, dict[SharePartitionKey, Q]] = {}
    for key, item in items.items():
        number = coordinators.partition_for(key.coordinator_key)
        by_partition.setdefault(number, {})[key] = item
    gathering: _Gathering[R] = _Gathering(len(by_partition))
    for part in by_partition.values():
        gathering.add(_run(coordinators, part, operation), part)
    return gathering.answer


def _run(
    coordinators: ShareCoordinators, items: Items[Q], operation: Operation[Q, R]
) -> Pending[Results[R]]:
    """Run an operation on the one coordinator of all items."""
    try:
        shard = coordinators.shard_for(next(iter(items)).coordinator_key)
        return shard.run(lambda: operation(shard.machine, items))
    except ApiError as error:
        refused: Pending[Results[R]] = Pending()
        refused.fail(error)
        return refused


class _Gathering(Generic[R]):
    """The results of several coordinators."""

    def __init__(self, parts: int) -> None:
        self.answer: Pending[Results[R]] = Pending()
        self._results: Results[R] = {}
        self._missing = parts
        self._complete_if_all()

    def add(self, part: Pending[Results[R]], items: Items[Q]) -> None:
        """Wait for the results of one coordinator."""

        def failed(error: Exception) -> None:
            self._arrived(dict.fromkeys(items, as_refusal(error)))

        part.when_done(self._arrived, failed)

    def _arrived(self, results: Mapping[SharePartitionKey, R | ApiError]) -> None:
        self._results.update(results)
        self._missing -= 1
        self._complete_if_all()

    def _complete_if_all(self) -> None:
        if not self._missing:
            self.answer.complete(self._results)


def as_refusal(error: Exception) -> ApiError:
    """Return the error for one share partition; a full disk is a coordinator that is away."""
    if not isinstance(error, ApiError):
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
        return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return error
