"""A transactional producer in its own process; it aborts every other transaction.

    python -m tests.support.clusters.cluster_transactor --bootstrap ... --topic ... --partitions 3 \
        --number 101 --ledger FILE

Its diary has the numbers of each transaction before the first one is sent, and the outcome once it
is known. If the cluster fences the producer or refuses to continue, a new producer with the same
transactional id replaces it, which ends the open transaction. Its outcome stays unknown.
"""

import argparse
import sys
import threading
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.support.clusters.cluster_client import (
    client_parser,
    connection_of,
    run_until_sigterm,
)
from tests.support.clusters.cluster_ledger import Diary, Fate, Stamp, stamped
from tests.support.clusters.cluster_producer import CLIENT

CALL_S = 10.0
PAUSE_S = 0.05
RECORDS_MAX = 60
VALUE_BYTES = 64
TIMEOUT_MS = 60_000
PRODUCER: dict[str, object] = {
    **CLIENT,
    "linger.ms": 5,
    "request.timeout.ms": 5000,
    "socket.timeout.ms": 6000,
    "transaction.timeout.ms": TIMEOUT_MS,
    "message.timeout.ms": TIMEOUT_MS,
}


class Transactor:
    """Runs transactions with one transactional id."""

    def __init__(self, options: argparse.Namespace, diary: Diary) -> None:
        self._options = options
        self._diary = diary
        self._rng = Random(options.number)
        self._sent = 0
        self._transaction = 0
        self.ending = threading.Event()

    def run(self) -> None:
        """Work until stopped, with as many producers as necessary."""
        while not self.ending.is_set():
            producer = self._begin_life()
            try:
                while not self.ending.is_set():
                    self._transact(producer)
                    self.ending.wait(self._options.pause_ms / 1000)
            except KafkaException as error:
                self._diary.note("given up", reason=str(error))

    def _begin_life(self) -> Any:
        own = {
            **connection_of(self._options),
            "transactional.id": f"transactor-{self._options.number}",
        }
        while True:
            producer = Producer({**PRODUCER, **own})
            try:
                _again(partial(producer.init_transactions, CALL_S), self.ending)
            except KafkaException as error:
                self._diary.note("no start", reason=str(error))
                if self.ending.wait(PAUSE_S):
                    raise
            else:
                return producer

    def _transact(self, producer: Any) -> None:
        self._transaction += 1
        number = self._transaction
        count = self._rng.randint(1, RECORDS_MAX)
        fate = Fate.ABORT if self._rng.random() < 0.5 else Fate.COMMIT
        self._diary.note("begun", transaction=number, first=self._sent, count=count, fate=fate)
        producer.begin_transaction()
        try:
            self._send(producer, number, count, fate)
            if fate is Fate.COMMIT:
                _again(lambda: producer.commit_transaction(CALL_S))
                self._diary.note("committed", transaction=number)
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._diary.note("to be aborted", transaction=number, reason=str(error))
        _again(lambda: producer.abort_transaction(CALL_S))
        self._diary.note("aborted", transaction=number)

    def _send(self, producer: Any, transaction: int, count: int, fate: Fate) -> None:
        first = self._sent
        self._sent += count
        for number in range(first, first + count):
            stamp = Stamp(self._options.number, fate, transaction, number)
            value = stamped(stamp, VALUE_BYTES)
            producer.produce(
                self._options.topic, value, partition=number % self._options.partitions
            )
            producer.poll(0)
        if fate is Fate.ABORT and self._rng.random() < 0.5:
            producer.flush(CALL_S)  # the other half is aborted while records are in flight


def _again(call: Callable[[], object], ending: threading.Event | None = None) -> None:
    """Repeat a call while its error is retriable."""
    while True:
        try:
            call()
        except KafkaException as error:
            problem: KafkaError = error.args[0]
            if not problem.retriable() or (ending is not None and ending.is_set()):
                raise
        else:
            return


def main() -> int:
    """Read the command line and work."""
    parser = client_parser()
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--pause-ms", type=int, default=20)
    options = parser.parse_args()
    diary = Diary(options.ledger)
    transactor = Transactor(options, diary)
    run_until_sigterm(transactor, diary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
