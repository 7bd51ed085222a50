"""A group member on kafka-python: classic groups.

Rebalances happen inside `poll`, on the client's own thread while ours waits: callbacks and
processing never overlap.

The member fetches the topic's metadata before it joins. kafka-python 3.0.12 joins while it fetches
the metadata, and then rejoins because the topic "changed". If that second join outlasts one call of
`poll`, the next call takes it for completed and never fetches its outcome. The member then neither
reads nor sends heartbeats (the Java client once had the same bug: KAFKA-9815).
"""

import threading
from collections.abc import Iterable
from typing import Any

import kafka
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from tests.support.members.membership_log import now
from tests.support.members.membership_member import (
    BATCH,
    POLL_S,
    Ledger,
    Member,
    MemberSettings,
    python_settings,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def make(settings: MemberSettings, ledger: Ledger) -> Member:
    """Return a member that has not started."""
    return KafkaPythonMember(settings, ledger)


class KafkaPythonMember(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """Polls, processes and commits; it is also its own rebalance listener."""

    def __init__(self, settings: MemberSettings, ledger: Ledger) -> None:
        self._topic = settings.topic
        self._ledger = ledger
        self._consumer: Any = kafka.KafkaConsumer(
            **python_settings(settings, ASSIGNORS),
            max_poll_records=BATCH,
        )

    def run(self, leaving: threading.Event) -> None:
        """Run until asked to leave; closing revokes all partitions."""
        self._consumer.subscribe([self._topic], listener=self)
        self._consumer.topics()  # waits for the metadata that a join is compared with
        while not leaving.is_set():
            for records in self._consumer.poll(timeout_ms=POLL_S * 1000).values():
                for record in records:
                    self._ledger.processed(record.partition, record.offset, record.value)
                self._commit(self._ledger.owned)
        self._consumer.close()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Log assigned partitions."""
        generation = self._consumer.group_metadata().generation_id
        self._ledger.assigned([place.partition for place in assigned], generation)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Commit before the partitions are revoked."""
        partitions = [place.partition for place in revoked]
        offsets = self._ledger.positions(partitions)
        is_member = True
        if offsets:
            sent = now()
            try:
                await self._consumer.commit_async(self._places(offsets))
                is_member = self._ledger.committed(sent, offsets)
            except KafkaError as error:
                is_member = self._ledger.refused(sent, type(error).__name__)
        self._ledger.given_up(partitions, is_member=is_member)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Log lost partitions."""
        self._ledger.given_up([place.partition for place in lost], is_member=False)

    def _commit(self, partitions: Iterable[int]) -> None:
        offsets = self._ledger.positions(partitions)
        sent = now()
        try:
            self._consumer.commit(self._places(offsets))
        except KafkaError as error:
            self._ledger.refused(sent, type(error).__name__)
        else:
            self._ledger.committed(sent, offsets)

    def _places(self, offsets: dict[int, int]) -> dict[Any, Any]:
        return {
            kafka.TopicPartition(self._topic, partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
