"""A consumer group member in its own process, which records the offsets it committed.

    python -m tests.support.clusters.cluster_member --bootstrap ... --topic ... --group ... \\
        --ledger FILE

Its diary has the offsets that were acknowledged as committed, and those that it found when it got
partitions. After SIGTERM it commits a last time and leaves.
"""

import argparse
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.clusters.cluster_client import (
    client_parser,
    connection_of,
    run_until_sigterm,
)
from tests.support.clusters.cluster_ledger import Diary, now_us
from tests.support.clusters.cluster_producer import CLIENT

LOOK_S = 20.0
COMMIT_EVERY_S = 0.2
BATCH = 2000
CONSUMER: dict[str, object] = {
    **CLIENT,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1000,
    "queued.max.messages.kbytes": 4096,
}


class GroupMember:
    """Reads its partitions, and commits several times a second."""

    def __init__(self, options: argparse.Namespace, diary: Diary) -> None:
        self._diary = diary
        self._places: dict[int, int] = {}
        self._topic: str = options.topic
        own = {**connection_of(options), "group.id": options.group}
        self._consumer: Any = Consumer({**CONSUMER, **own})
        self._consumer.subscribe(
            [options.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        self.ending = threading.Event()

    def run(self) -> None:
        """Read and commit until stopped."""
        committed = time.monotonic()
        while not self.ending.is_set():
            for message in self._consumer.consume(BATCH, 0.1):
                if message.error() is None:
                    self._places[message.partition()] = message.offset() + 1
            if time.monotonic() - committed > COMMIT_EVERY_S:
                self._commit()
                committed = time.monotonic()
        self._consumer.close()

    def _commit(self) -> None:
        places = [TopicPartition(self._topic, p, o) for p, o in sorted(self._places.items())]
        if not places:
            return
        self._places.clear()
        try:
            answered = self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            self._diary.note("not committed", reason=str(error))
            return
        for place in answered:
            if place.error is None:
                self._diary.note("committed", partition=place.partition, offset=place.offset)

    def _assigned(self, consumer: Any, given: list[TopicPartition]) -> None:
        asked_us = now_us()
        try:
            found = consumer.committed(given, LOOK_S)
        except KafkaException as error:
            self._diary.note("not found", reason=str(error))
            return
        for place in found:
            if place.error is None:
                self._diary.note(
                    "found", asked_us=asked_us, partition=place.partition, offset=place.offset
                )

    def _revoked(self, consumer: Any, taken: list[TopicPartition]) -> None:
        del consumer
        self._commit()
        self._diary.note("revoked", partitions=[place.partition for place in taken])

    def _lost(self, consumer: Any, taken: list[TopicPartition]) -> None:
        del consumer
        self._places.clear()
        self._diary.note("lost", partitions=[place.partition for place in taken])


def main() -> int:
    """Read the command line and join."""
    parser = client_parser()
    parser.add_argument("--group", required=True)
    options = parser.parse_args()
    diary = Diary(options.ledger)
    member = GroupMember(options, diary)
    run_until_sigterm(member, diary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
