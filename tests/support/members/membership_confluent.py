"""A group member on confluent-kafka (librdkafka): classic and `consumer` groups.

The client does not expose its generation.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.members.membership_log import now
from tests.support.members.membership_member import BATCH, POLL_S, Ledger, Member, MemberSettings


def make(settings: MemberSettings, ledger: Ledger) -> Member:
    """Return a member that has not started."""
    return ConfluentMember(settings, ledger)


def configuration(settings: MemberSettings) -> dict[str, Any]:
    """Return the member's settings under librdkafka's names."""
    common: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap,
        "group.id": settings.group,
        "group.protocol": settings.protocol,
        "client.id": settings.name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 2,
    }
    if settings.instance:
        common["group.instance.id"] = settings.instance
    if settings.protocol == "consumer":
        return common | {"group.remote.assignor": settings.assignor}
    return common | {
        "partition.assignment.strategy": settings.assignor,
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.heartbeat_ms,
    }


class ConfluentMember:
    """Polls, processes and commits."""

    def __init__(self, settings: MemberSettings, ledger: Ledger) -> None:
        self._topic = settings.topic
        self._ledger = ledger
        self._consumer: Any = Consumer(configuration(settings))
        self._uncommitted = 0

    def run(self, leaving: threading.Event) -> None:
        """Run until asked to leave; closing revokes all partitions."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        while not leaving.is_set():
            message = self._consumer.poll(POLL_S)
            if message is not None:
                self._take(message)
            if self._uncommitted >= BATCH or (message is None and self._uncommitted):
                self._commit(self._ledger.owned)
        self._consumer.close()

    def _take(self, message: Any) -> None:
        if message.error() is not None:
            self._ledger.log.failed(f"poll: {message.error()}")
            return
        self._ledger.processed(message.partition(), message.offset(), message.value())
        self._uncommitted += 1

    def _commit(self, partitions: Iterable[int]) -> bool:
        """Commit; return whether this is still a member."""
        offsets = self._ledger.positions(partitions)
        self._uncommitted = 0
        if not offsets:
            return True
        sent = now()
        asked = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
        try:
            answered = self._consumer.commit(offsets=asked, asynchronous=False)
        except KafkaException as error:
            return self._ledger.refused(sent, error.args[0].name())
        failed: list[KafkaError] = [place.error for place in answered if place.error is not None]
        if failed:
            return self._ledger.refused(sent, failed[0].name())
        return self._ledger.committed(sent, offsets)

    def _assigned(self, _: object, places: Sequence[TopicPartition]) -> None:
        self._ledger.assigned([place.partition for place in places])

    def _revoked(self, _: object, places: Sequence[TopicPartition]) -> None:
        partitions = [place.partition for place in places]
        self._ledger.given_up(partitions, is_member=self._commit(partitions))

    def _lost(self, _: object, places: Sequence[TopicPartition]) -> None:
        self._ledger.given_up([place.partition for place in places], is_member=False)
