"""An idempotent producer in its own process, which records every acknowledgement.

    python -m tests.support.clusters.cluster_producer --bootstrap ... --topic ... --partitions 6 \
        --number 1 --rate 2000 --ledger FILE

It retries without limit until SIGTERM. Then it waits until all sent records are acknowledged, and
exits with 0. It exits with 1 if a record fails: for an idempotent producer without a timeout that
happens only if the cluster broke a guarantee.
"""

import argparse
import sys
import threading
import time
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.support.clusters.cluster_client import (
    client_parser,
    connection_of,
    exit_code,
    run_until_sigterm,
)
from tests.support.clusters.cluster_errors import report_error
from tests.support.clusters.cluster_ledger import (
    SHIFT,
    Fate,
    RowFile,
    Stamp,
    now_us,
    read_stamp,
    stamped,
)

CLIENT: dict[str, object] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "socket.connection.setup.timeout.ms": 1500,
    "topic.metadata.refresh.interval.ms": 5000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "metadata.recovery.strategy": "none",
    "log_level": 2,
    "error_cb": report_error,
}
PRODUCER: dict[str, object] = {
    **CLIENT,
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "request.timeout.ms": 5000,
    "socket.timeout.ms": 6000,
    "message.timeout.ms": 0,
    "queue.buffering.max.messages": 20_000,
}
TURN_S = 0.02
FLUSH_EVERY_S = 0.2


class PacedProducer:
    """Sends numbered records to all partitions in turn, at a given rate."""

    def __init__(self, options: argparse.Namespace, ledger: RowFile) -> None:
        self._topic: str = options.topic
        self._partitions: int = options.partitions
        self._name: int = options.number
        self._size: int = options.size
        self._rate: int = options.rate
        self._ledger = ledger
        settings = {**PRODUCER, **connection_of(options)}
        self._producer: Any = Producer({**settings, "client.id": f"producer-{self._name}"})
        self._key = b"producer-%d" % self._name
        self._sent = 0
        self.failure = ""
        self.ending = threading.Event()

    def run(self) -> None:
        """Send until stopped; then wait for the remaining acknowledgements."""
        begun = time.monotonic()
        flushed = begun
        while not self.ending.is_set() and not self.failure:
            now = time.monotonic()
            due = int((now - begun) * self._rate)
            if due - self._sent > self._rate:  # do not send a burst after a pause
                begun, due = now - self._sent / self._rate, self._sent
            while self._sent < due and self._send():
                pass
            self._producer.poll(TURN_S)
            if now - flushed > FLUSH_EVERY_S:
                self._ledger.flush()
                flushed = now
        while not self.failure and self._producer.flush(FLUSH_EVERY_S):
            self._ledger.flush()

    def _send(self) -> bool:
        number, partition = divmod(self._sent, self._partitions)
        value = stamped(Stamp(self._name, Fate.PLAIN, 0, number), self._size)
        try:
            self._producer.produce(
                self._topic, value, self._key, partition=partition, on_delivery=self._delivered
            )
        except BufferError:
            return False
        self._sent += 1
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        number = read_stamp(message.value()).number
        if error is not None:
            self.failure = f"{message.partition()} {number}: {error}"
            return
        self._ledger.add(message.partition() << SHIFT | number, message.offset(), now_us())


def main() -> int:
    """Read the command line and produce."""
    parser = client_parser()
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    ledger = RowFile(options.ledger)
    producer = PacedProducer(options, ledger)
    run_until_sigterm(producer, ledger)
    return exit_code("a record was refused", producer.failure)


if __name__ == "__main__":
    sys.exit(main())
