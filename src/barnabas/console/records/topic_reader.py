"""Reads the partitions of one topic from their leaders, as a read_committed consumer does.

    reader = TopicReader(open_wire, "orders", {0: 100, 1: 250})
    for found in reader.fetch(wait_ms=500): ...

`positions` holds the next offset of each partition. Failures that pass (a leader that moves, a
broker that restarts) raise `AwayError`; the next fetch connects anew and asks who leads now.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_requests import topic_metadata
from barnabas.console.records.found_records import FoundRecord
from barnabas.console.records.log_positions import EARLIEST, READ_COMMITTED, offsets_at
from barnabas.model.errors import CorruptBatchError, ErrorCode, TooLargeError
from barnabas.protocol.markers import Batch, visible
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.records import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    batches,
    records,
)
from barnabas.wire.cluster_wire import Node, Wire, require
from barnabas.wire.wire_failures import LinkError, LoginError, RefusedError

FETCH_BYTES = 4 << 20
PARTITION_BYTES = 1 << 20
BATCH_BYTES_MAX = 64 << 20
"""A batch that decompresses to more is left out, and counted as an error."""
PASSING = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
}


class AwayError(LinkError):
    """A leader is away; the message says which, and why."""


@dataclass(slots=True)
class ReadCounts:
    """What a reader met besides records."""

    scanned: int = 0
    unreadable: int = 0
    """Batches that are damaged, or too large to decompress."""
    deleted: int = 0
    """Offsets that retention deleted before they were read."""


class TopicReader:
    """Reads some partitions of a topic."""

    def __init__(self, connect: Callable[[], Wire], topic: str, positions: dict[int, int]) -> None:
        self._connect = connect
        self._topic = topic
        self.positions = positions
        self.counts = ReadCounts()
        self._wire: Wire | None = None
        self._topic_id = bytes(16)
        self._fetches = 0
        self._has_read = False
        self._leaders: dict[int, Node | None] = {}

    def close(self) -> None:
        """Close all connections; the next fetch connects again."""
        if self._wire is not None:
            self._wire.__exit__(None, None, None)
            self._wire = None

    def fetch(self, partitions: Iterable[int], wait_ms: int) -> Iterator[FoundRecord]:
        """Yield the next records of partitions, after at most `wait_ms` if there are none."""
        try:
            yield from self._fetch(sorted(partitions), wait_ms)
        except (LoginError, RefusedError):
            self.close()
            raise
        except (LinkError, OSError) as error:
            self.close()
            raise AwayError(str(error)) from None
        except AdminError as error:
            self.close()
            if not self._has_read:
                raise
            raise AwayError(str(error)) from None  # a broker that has just started knows no topics

    def _fetch(self, partitions: list[int], wait_ms: int) -> Iterator[FoundRecord]:
        wire = self._connected()
        by_leader: dict[Node, list[int]] = {}
        for number in partitions:
            leader = self._leaders.get(number)
            if leader is None:
                self.close()
                raise AwayError(f"{self._topic}-{number} has no leader")
            by_leader.setdefault(leader, []).append(number)
        for leader, numbers in by_leader.items():
            request = self._request(numbers, wait_ms // len(by_leader))
            answer = wire.ask(leader, request, FetchResponse)
            require(answer.error_code, f"Broker {leader.id} cannot read {self._topic}")
            for topic in answer.responses:
                for data in topic.partitions:
                    yield from self._records(wire, data)
        self._has_read = True

    def _connected(self) -> Wire:
        if self._wire is None:
            wire = self._wire = self._connect()
            found = topic_metadata(wire, self._topic)
            nodes = {node.id: node for node in wire.nodes()}
            self._topic_id = found.topic_id
            self._leaders = {
                each.partition_index: nodes.get(each.leader_id) for each in found.partitions
            }
        return self._wire

    def _request(self, numbers: list[int], wait_ms: int) -> FetchRequest:
        # The first partition of the list may fill the answer; the others get their turn.
        first = self._fetches % len(numbers)
        self._fetches += 1
        partitions = [
            FetchPartition(
                partition=number,
                fetch_offset=self.positions[number],
                partition_max_bytes=PARTITION_BYTES,
            )
            for number in (*numbers[first:], *numbers[:first])
        ]
        topic = FetchTopic(topic=self._topic, topic_id=self._topic_id, partitions=partitions)
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=READ_COMMITTED,
            topics=[topic],
            forgotten_topics_data=[],
        )

    def _records(self, wire: Wire, data: PartitionData) -> Iterator[FoundRecord]:
        number = data.partition_index
        if data.error_code in PASSING:
            self.close()
            name = ErrorCode(data.error_code).name
            raise AwayError(f"{self._topic}-{number}: {name}")
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._skip_deleted(wire, number)
            return
        require(data.error_code, f"{self._topic}-{number} cannot be read")
        aborted = [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
        ]
        found = list(self._batches(data))
        for header, batch in visible(found, aborted):
            yield from self._unpacked(number, header, batch)
        if found:
            self.positions[number] = max(self.positions[number], found[-1][0].last_offset + 1)

    def _batches(self, data: PartitionData) -> Iterator[Batch]:
        try:
            yield from batches(memoryview(data.records or b""))
        except CorruptBatchError:
            self.counts.unreadable += 1

    def _unpacked(
        self, number: int, header: BatchHeader, batch: memoryview
    ) -> Iterator[FoundRecord]:
        is_append_time = bool(header.attributes & LOG_APPEND_TIME)
        if header.size <= HEADER_BYTES and not header.record_count:
            return
        try:
            for record in records(batch, header, BATCH_BYTES_MAX):
                if record.offset >= self.positions[number]:
                    self.counts.scanned += 1
                    yield FoundRecord(
                        self._topic, number, record, header.leader_epoch, is_append_time
                    )
                    self.positions[number] = record.offset + 1
        except (CorruptBatchError, TooLargeError):
            self.counts.unreadable += 1

    def _skip_deleted(self, wire: Wire, number: int) -> None:
        """Go on at the first record that is left; a log that became shorter is read again."""
        starts = offsets_at(wire, self._topic, {number: EARLIEST}, self._leaders, READ_COMMITTED)
        start = starts.get(number, self.positions[number])
        self.counts.deleted += max(0, start - self.positions[number])
        self.positions[number] = start
