"""A consumer in its own process, which records every record it reads.

    python -m tests.support.clusters.cluster_reader --bootstrap ... --topic ... --partitions 0,1,2 \
        --isolation read_committed --ledger FILE [--until-end=1]

It belongs to no group and must not reset its offset: if a cluster loses records that it had
delivered, the reader fails. It ends with SIGTERM, or at the current end of the partitions.
"""

import argparse
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.support.clusters.cluster_client import (
    client_parser,
    connection_of,
    exit_code,
    run_until_sigterm,
)
from tests.support.clusters.cluster_ledger import (
    SHIFT,
    RowFile,
    in_transaction,
    read_stamp,
    sender,
)
from tests.support.clusters.cluster_producer import CLIENT

CONSUMER: dict[str, object] = {
    **CLIENT,
    "group.id": "reader",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 8192,
}
FLUSH_EVERY_S = 0.2
BATCH = 2000


class Reader:
    """Reads some partitions of one topic from the beginning."""

    def __init__(self, options: argparse.Namespace, ledger: RowFile) -> None:
        self._ledger = ledger
        self._unread = {int(word) for word in options.partitions.split(",")}
        settings = {
            **CONSUMER,
            **connection_of(options),
            "isolation.level": options.isolation,
            "enable.partition.eof": bool(options.until_end),
        }
        self._consumer: Any = Consumer(settings)
        places = [TopicPartition(options.topic, number, 0) for number in sorted(self._unread)]
        self._consumer.assign(places)
        self.failure = ""
        self.ending = threading.Event()

    def run(self) -> None:
        """Read until stopped."""
        flushed = time.monotonic()
        while self._unread and not self.failure and not self.ending.is_set():
            for message in self._consumer.consume(BATCH, 0.1):
                self._take(message)
            if time.monotonic() - flushed > FLUSH_EVERY_S:
                self._ledger.flush()
                flushed = time.monotonic()
        self._consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            stamp = read_stamp(message.value())
            self._ledger.add(
                message.partition() << SHIFT | message.offset(),
                sender(stamp.producer, stamp.number),
                in_transaction(stamp.transaction, stamp.fate),
            )
        elif error.code() == KafkaError._PARTITION_EOF:
            self._unread.discard(message.partition())
        elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():
            self.failure = f"partition {message.partition()}: {error}"


def main() -> int:
    """Read the command line and the topic."""
    parser = client_parser()
    parser.add_argument("--partitions", required=True)
    parser.add_argument("--isolation", default="read_uncommitted")
    parser.add_argument("--until-end", type=int, default=0)
    options = parser.parse_args()
    ledger = RowFile(options.ledger)
    reader = Reader(options, ledger)
    run_until_sigterm(reader, ledger)
    return exit_code("the reader lost its place", reader.failure)


if __name__ == "__main__":
    sys.exit(main())
