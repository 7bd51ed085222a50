"""A group member on aiokafka: classic groups with eager assignors.

aiokafka rebalances in a background task. A lock keeps its callbacks and the processing apart, and
records that were fetched just before a rebalance are discarded. Closing does not call a callback,
so the member commits and gives up its partitions before.
"""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

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
}


def make(settings: MemberSettings, ledger: Ledger) -> Member:
    """Return a member that has not started."""
    return AiokafkaMember(settings, ledger)


class AiokafkaMember(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Polls, processes and commits; it is also its own rebalance listener."""

    def __init__(self, settings: MemberSettings, ledger: Ledger) -> None:
        self._settings = settings
        self._ledger = ledger
        self._consumer: Any = None
        self._lock = asyncio.Lock()

    def run(self, leaving: threading.Event) -> None:
        """Run until asked to leave."""
        asyncio.run(self._run(leaving))

    async def _run(self, leaving: threading.Event) -> None:
        settings = self._settings
        self._consumer = aiokafka.AIOKafkaConsumer(
            **python_settings(settings, ASSIGNORS),
        )
        self._consumer.subscribe([settings.topic], listener=self)
        await self._consumer.start()
        while not leaving.is_set():
            found = await self._consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=BATCH)
            async with self._lock:
                await self._take(found)
        async with self._lock:
            await self._give_up(self._ledger.owned)
        await self._consumer.stop()

    async def _take(self, found: dict[Any, list[Any]]) -> None:
        records = [record for records in found.values() for record in records]
        mine = [record for record in records if self._ledger.owns(record.partition)]
        for record in mine:
            self._ledger.processed(record.partition, record.offset, record.value)
        if mine:
            await self._commit(self._ledger.owned)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Log assigned partitions."""
        async with self._lock:
            generation = self._consumer._coordinator.generation
            self._ledger.assigned([place.partition for place in assigned], generation)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Commit before the partitions are revoked."""
        async with self._lock:
            await self._give_up([place.partition for place in revoked])

    async def _give_up(self, partitions: Iterable[int]) -> None:
        mine = self._ledger.owned & set(partitions)
        if mine:
            self._ledger.given_up(mine, is_member=await self._commit(mine))

    async def _commit(self, partitions: Iterable[int]) -> bool:
        offsets = self._ledger.positions(partitions)
        if not offsets:
            return True
        sent = now()
        places = {
            aiokafka.TopicPartition(self._settings.topic, partition): offset
            for partition, offset in offsets.items()
        }
        try:
            await self._consumer.commit(places)
        except KafkaError as error:
            return self._ledger.refused(sent, type(error).__name__)
        return self._ledger.committed(sent, offsets)
