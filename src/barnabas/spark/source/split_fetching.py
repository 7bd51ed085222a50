"""Fetches the records of one split over our own connections and returns them as Arrow batches.

The batch headers of a response show where the next Fetch starts, so that request is sent before the
records of this response are decoded: broker and worker work at the same time. Only leaders are
read from, even if client.rack is set.

Retriable errors (a broker that restarts, a leader that moves) are retried with new metadata until
the timeout of the read is over. Every response with records restarts the timeout.
"""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from barnabas.model.errors import ErrorCode
from barnabas.protocol.markers import visible
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.spark.connections import NoPartitionError, connections
from barnabas.spark.query_errors import FetchError
from barnabas.spark.source.data_loss import GONE_PATIENCE_S, report
from barnabas.spark.source.offset_json import EARLIEST, LATEST
from barnabas.spark.source.record_decoding import (
    Batch,
    Wanted,
    checked_batches,
    decode,
    slabs,
)
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.split_planning import (
    OffsetRange,
    deleted_records_message,
    truncation_message,
)
from barnabas.wire.pipeline import ReadingPipeline
from barnabas.wire.wire_failures import LinkError

FETCH_BYTES = 4 << 20
FETCH_BYTES_MAX = 64 << 20
RECORD_BYTES = 1024
"""The assumed size of a record until the first response, so that a small split fetches little."""
EDGE_BYTES = 1 << 16
"""Room for records outside the split, in the batches at its ends."""
WAIT_MS = 500
PAUSE_S = 0.05
PAUSE_MAX_S = 1.0

PASSING = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


def fetched(split: OffsetRange, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Return the records of a split."""
    fetch = _Fetch(split, settings)
    try:
        yield from fetch.rows()
    finally:
        fetch.close()


class _Fetch:
    """One read of one split."""

    def __init__(self, split: OffsetRange, settings: ReadSettings) -> None:
        self._place, self._next, self._end = split
        self._settings = settings
        self._connections = connections(settings.client)
        self._link: ReadingPipeline | None = None
        self._bytes = fetch_bytes(settings)
        self._record_bytes = RECORD_BYTES
        self._check_crcs = settings.client.get("check.crcs", "true").lower() != "false"
        self._pause_s = PAUSE_S
        self._since_s = self._deadline_s = 0.0
        self._restart_timeout()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Return records up to the end, or up to the last record before it."""
        while self._next < self._end:
            data = self._answer()
            if data is not None:
                yield from self._decoded(data)

    def close(self) -> None:
        """Return the connection for the next read."""
        if self._link is not None:
            self._connections.give_back(self._link)
            self._link = None

    def _decoded(self, data: PartitionData) -> Iterator[pa.RecordBatch]:
        records = memoryview(data.records or b"")
        found = checked_batches(records, check_crcs=self._check_crcs)
        if not found:
            self._handle_empty_response(data, cut=len(records) > 0)
            return
        self._restart_timeout()
        wanted = Wanted(self._place, self._next, self._end, self._settings.include_headers)
        self._record_bytes = record_bytes(found)
        self._next = max(self._next, found[-1][0].last_offset + 1)
        if self._next < self._end:
            self._try(self._ask)
        aborted = [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
        ]
        shown = (each for each in visible(found, aborted) if each[0].base_offset < self._end)
        for slab in slabs(records, shown):
            rows = decode(slab, wanted)
            if rows is not None:
                yield rows

    def _answer(self) -> PartitionData | None:
        """Return the leader's response; None if the request failed and can be retried."""
        data = self._try(self._receive)
        if data is None or data.error_code == ErrorCode.NONE:
            return data
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._try(self._out_of_range)
        elif data.error_code in PASSING:
            self._failed(LinkError(ErrorCode(data.error_code).name))
        else:
            raise FetchError(
                f"{self._place} cannot be read: {_name(data.error_code)}. Check the topic with: "
                f"barnabas topic describe {self._place.topic}"
            )
        return None

    def _try(self, action: Callable[[], PartitionData | None]) -> PartitionData | None:
        try:
            return action()
        except NoPartitionError as error:
            self._report_missing_partition(error)
        except LinkError as error:
            self._failed(error)
        return None

    def _ask(self) -> None:
        """Send a Fetch from the present offset."""
        if self._link is None:
            self._link = self._connections.to_leader(self._place)
        self._link.send(self._request())

    def _request(self) -> FetchRequest:
        size = min(self._bytes, EDGE_BYTES + (self._end - self._next) * self._record_bytes)
        wanted = FetchPartition(
            partition=self._place.partition, fetch_offset=self._next, partition_max_bytes=size
        )
        return FetchRequest(
            max_wait_ms=int(self._settings.client.get("fetch.wait.max.ms", WAIT_MS)),
            min_bytes=1,
            max_bytes=size,
            isolation_level=int(self._settings.is_read_committed),
            topics=[FetchTopic(topic=self._place.topic, partitions=[wanted])],
        )

    def _receive(self) -> PartitionData:
        if self._link is None or not self._link.in_flight:
            self._ask()
        assert self._link is not None
        answer = self._link.receive(FetchResponse)
        for topic in answer.responses:
            for partition in topic.partitions:
                return partition
        raise LinkError(
            f"the Fetch response lacks {self._place} (error {_name(answer.error_code)})"
        )

    def _handle_empty_response(self, data: PartitionData, *, cut: bool) -> None:
        """Raise the fetch size if a batch did not fit; stop if the log ends early."""
        if cut:
            self._bytes = min(self._bytes * 4, FETCH_BYTES_MAX)
        limit = data.last_stable_offset if self._settings.is_read_committed else data.high_watermark
        if time.monotonic() > self._deadline_s:
            self._lost(truncation_message(self._place, limit, self._end), self._end)

    def _out_of_range(self) -> None:
        """Find out whether records are missing at the start or at the end."""
        earliest, latest = self._limit(EARLIEST), self._limit(LATEST)
        if earliest > self._next:
            first = min(earliest, self._end)
            self._lost(deleted_records_message(self._place, self._next, first), first)
        elif time.monotonic() > self._deadline_s:
            self._lost(truncation_message(self._place, latest, self._end), self._end)
        else:
            self._pause()

    def _limit(self, edge: int) -> int:
        assert self._link is not None
        asked = ListOffsetsPartition(partition_index=self._place.partition, timestamp=edge)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._settings.is_read_committed),
            topics=[ListOffsetsTopic(name=self._place.topic, partitions=[asked])],
        )
        self._link.send(request)
        partition = self._link.receive(ListOffsetsResponse).topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE:
            raise LinkError(_name(partition.error_code))
        return partition.offset

    def _lost(self, loss: str, go_on_at: int) -> None:
        report([loss], fail=self._settings.fail_on_data_loss)
        self._next = go_on_at

    def _report_missing_partition(self, error: LinkError) -> None:
        """Report a partition as deleted once the cluster has not known it for a while."""
        self._deadline_s = min(self._deadline_s, self._since_s + GONE_PATIENCE_S)
        if time.monotonic() > self._deadline_s:
            loss = f"{error}: offsets {self._next} to {self._end - 1} of {self._place} are gone"
            self._lost(loss, self._end)
        else:
            self._drop()

    def _failed(self, error: LinkError) -> None:
        """Drop the cached leader and try again, unless the timeout is over."""
        if time.monotonic() > self._deadline_s:
            raise FetchError(
                f"{self._place} could not be read at offset {self._next} for "
                f"{self._settings.patience_ms / 1000:.0f} s: {error}. Check the brokers, or raise "
                "the option kafkaConsumer.pollTimeoutMs"
            ) from error
        self._drop()

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._connections.forget(self._place)
        self._pause()

    def _pause(self) -> None:
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)

    def _restart_timeout(self) -> None:
        self._since_s = time.monotonic()
        self._deadline_s = self._since_s + self._settings.patience_ms / 1000
        self._pause_s = PAUSE_S


def fetch_bytes(settings: ReadSettings) -> int:
    """Return the size of one Fetch: that of the options, or a few MB."""
    for name in ("max.partition.fetch.bytes", "fetch.message.max.bytes"):
        if name in settings.client:
            return int(settings.client[name])
    return FETCH_BYTES


def record_bytes(found: list[Batch]) -> int:
    """Return the wire size of a record of these batches, at most a byte too large."""
    size = sum(header.size for header, _ in found)
    return 1 + size // max(1, sum(header.record_count for header, _ in found))


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
