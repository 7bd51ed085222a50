"""The driver side of `spark.readStream`: positions, batch limits and progress.

Positions are JSON (`stream_positions.py`). The end of the first batch also has the start of that
batch. Spark does not log the start, and asks for the initial offset again when it has to repeat the
batch: by then `latest` would be another offset, and the records between would be lost. For the same
reason options that do not match the topics (because a partition was added, for example) are refused
not when Spark asks for the initial offset, but when it asks for a batch that starts there.

A partition that the cluster does not know for a moment keeps its offset in the position, so that
reading continues there once it is back. A topic that was deleted and created again has another id
and is read from its start.

Progress is committed to a consumer group, so that group tools show the lag of the query. It is
committed when Spark commits, and also when Spark asks for the end of the next batch, since
everything before its start is done by then: under AvailableNow no commit follows the last batch.
"""

import math
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import OptionError
from barnabas.spark.source.data_loss import GONE_PATIENCE_S, report
from barnabas.spark.source.lookups import Cluster, check_properties, existing
from barnabas.spark.source.offset_json import Nested, Offsets
from barnabas.spark.source.offset_limits import starting_offsets
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.source_progress import METRICS, reported
from barnabas.spark.source.split_planning import (
    TASK_RECORDS,
    OffsetRange,
    admitted,
    deleted_partition_message,
    gathered,
    ranges_between,
    recreated_topic_message,
    shared,
    splits,
)
from barnabas.spark.source.split_reading import SplitPartition, read_splits
from barnabas.spark.source.stream_positions import INITIAL, REFUSED, START, Position, position


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new records, batch by batch."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._cluster = Cluster(settings)
        self._initial: Nested | None = None
        self._target: Position | None = None
        self._reported: Position | None = None
        self._reached: Offsets = {}
        self._gone: frozenset[TopicPartition] = frozenset()
        self._committed: Offsets = {}
        self._last_batch_s = -math.inf

    def initialOffset(self) -> Nested:  # noqa: N802 - Spark's name
        """Return the start of a new query."""
        if self._initial is None:
            check_properties(self._settings.client)
            try:
                self._initial = {INITIAL: True, **self._start().stored()}
            except OptionError as error:
                self._initial = {INITIAL: True, REFUSED: str(error)}
        return self._initial

    def _start(self) -> Position:
        topics = self._cluster.topics(self._settings.subscription)
        existing(self._settings.subscription, topics.partitions)
        earliest = self._cluster.earliest(topics.partitions)
        latest = self._cluster.latest(topics.partitions)
        start = starting_offsets(self._settings, self._cluster, earliest, latest)
        return Position(start, topics.ids)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch in the options."""
        most = self._settings.max_offsets_per_trigger
        least = self._settings.min_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:  # noqa: N802 - Spark's name
        """Return the end of the next batch; its start if there is nothing to read."""
        if REFUSED in start:
            raise OptionError(start[REFUSED])
        begun = position(start)
        self._commit_progress(begun.offsets)
        latest = self._latest(begun)
        self._reached = begins = begun.without(begun.recreated_topics(latest.topic_ids)).offsets
        if self._should_wait_for_more(begins, latest.offsets, limit):
            return start
        self._last_batch_s = time.monotonic()
        ends = latest.offsets
        if isinstance(limit, ReadMaxRows):
            new = ends.keys() - begins.keys()
            ends = admitted(begins, ends, self._cluster.earliest(new), limit.max_rows)
        if ends == begins:
            return start
        self._reached = ends
        mark = {START: begun.stored()} if INITIAL in start else {}
        return {**mark, **Position(ends, latest.topic_ids).stored()}

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802 - Spark's name
        """Return the last known ends of the topics, and the lag.

        Spark shows it in the progress of the query; see `source_progress.py`.
        """
        if self._reported is None:
            return None
        metrics = reported(self._settings, self._reported.offsets, self._reached)
        return {METRICS: metrics, **self._reported.stored()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end: the next run reads later records."""
        self._target = self._look_up_latest(Position({}, {}))

    def partitions(self, start: Nested, end: Nested) -> Sequence[InputPartition]:
        """Return the pieces of a batch."""
        if INITIAL in end:
            return []
        if REFUSED in start and START not in end:
            raise OptionError(start[REFUSED])
        begun, ended = position(end.get(START, start)), position(end)
        return [SplitPartition(*task) for task in self._tasks(self._ranges(begun, ended))]

    def _ranges(self, begun: Position, ended: Position) -> list[OffsetRange]:
        """Return the records between two positions, of the topics with these ids."""
        recreated = begun.recreated_topics(ended.topic_ids)
        start, end = begun.without(recreated).offsets, _moved(begun.without(recreated), ended)
        topics = self._cluster.topics(self._settings.subscription, end)
        replaced = end.recreated_topics(topics.ids)
        end = end.without(replaced)
        losses = [
            recreated_topic_message(topic, begun.offsets) for topic in sorted(recreated | replaced)
        ]
        earliest = self._cluster.earliest(topics.partitions & end.offsets.keys())
        begins = {place: start[place] for place in end.offsets if place in start}
        plan = ranges_between(begins, end.offsets, earliest, same=begun.topic_ids.keys())
        report([*losses, *plan.losses], fail=self._settings.fail_on_data_loss)
        return plan.ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one piece, in a worker."""
        return read_splits(partition, self._settings)

    def commit(self, end: Nested) -> None:
        """Commit to the consumer group that everything before a position is done."""
        self._commit_progress(position(end).offsets)

    def __getstate__(self) -> ReadSettings:
        return self._settings

    def __setstate__(self, settings: ReadSettings) -> None:
        StreamReader.__init__(self, settings)

    def _tasks(self, ranges: list[OffsetRange]) -> list[list[OffsetRange]]:
        """Divide a batch into tasks; exactly-once sinks need the same tasks for the same ranges."""
        least = self._settings.min_partitions
        most = self._settings.max_records_per_partition
        pieces = splits(ranges, least, most)
        if least is not None or self._settings.max_partitions is not None:
            return gathered(pieces, self._settings.max_partitions)
        return shared(pieces, TASK_RECORDS if most is None else min(most, TASK_RECORDS))

    def _latest(self, begun: Position) -> Position:
        """Return the ends of topics, with an offset for each missing partition.

        A new leader may report an end before our start (KIP-207): ask again.
        """
        if self._target is None or begun.offsets.keys() - self._target.offsets.keys() - self._gone:
            give_up_s = time.monotonic() + GONE_PATIENCE_S
            seen = self._look_up_latest(begun)
            while _ends_before(seen, begun) and time.monotonic() < give_up_s:
                time.sleep(self._settings.lookup_pause_ms / 1000)
                seen = self._look_up_latest(begun)
            if self._target is not None:
                self._target = seen
        else:
            seen = self._target
        old = begun.without(begun.recreated_topics(seen.topic_ids))
        self._note_gone(old.offsets, seen)
        return seen.with_missing(old)

    def _look_up_latest(self, begun: Position) -> Position:
        """Look up the ends of topics; wait for known partitions, unless they were deleted."""
        known = {place: begun.offsets[place] for place in begun.offsets.keys() - self._gone}
        expected = Position(known, begun.topic_ids)
        topics = self._cluster.topics(self._settings.subscription, expected)
        self._reported = Position(self._cluster.latest(topics.partitions), topics.ids)
        return self._reported

    def _note_gone(self, begun: Offsets, seen: Position) -> None:
        """Report each deleted partition, once."""
        gone = frozenset(begun.keys() - seen.offsets.keys())
        losses = [
            deleted_partition_message(place, begun[place]) for place in sorted(gone - self._gone)
        ]
        self._gone = gone
        report(losses, fail=self._settings.fail_on_data_loss)

    def _should_wait_for_more(self, begun: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Return whether to wait for more records; never if the end is fixed.

        The delay starts when this last returned False, as in Spark's connector, so the first batch
        of a query never waits.
        """
        least = self._settings.min_offsets_per_trigger
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        waited_ms = (time.monotonic() - self._last_batch_s) * 1000
        waiting = sum(max(0, latest[place] - begun.get(place, 0)) for place in latest)
        return waiting < least and waited_ms < self._settings.max_trigger_delay_ms

    def _commit_progress(self, offsets: Offsets) -> None:
        kept = {place: offset for place, offset in offsets.items() if place not in self._gone}
        if kept and kept != self._committed:
            self._cluster.commit_progress(self._settings.group_id, kept)
            self._committed = kept


def _moved(begun: Position, ended: Position) -> Position:
    """Return the ends of the partitions with records in a batch."""
    offsets = {
        place: offset
        for place, offset in ended.offsets.items()
        if begun.offsets.get(place) != offset
    }
    topics = {place.topic for place in offsets}
    return Position(
        offsets, {name: ended.topic_ids[name] for name in topics & ended.topic_ids.keys()}
    )


def _ends_before(seen: Position, begun: Position) -> bool:
    """Return whether a topic with the same id ends before the position up to which we read."""
    old = begun.without(begun.recreated_topics(seen.topic_ids)).offsets
    return any(seen.offsets[place] < old.get(place, 0) for place in seen.offsets)
