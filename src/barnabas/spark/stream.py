"""spark.readStream: positions, admission and progress, on the driver.

Positions are JSON of topic, partition and offset. Two marks may stand beside the topics, under
names that no topic can have, since Spark does not log where the first batch started and asks for
the initial offset again when it has to repeat that batch: by then `latest` would be another place,
and the records between would be lost.

    @initial   this position is where the query started; nothing was read
    @start     where the batch that ends here started; only on the end of the first batch

Progress is posted to a consumer group, so that group tools show the lag of the query. It is posted
when Spark commits, and also when Spark asks how far the next batch may go, since all before its
start is done by then: under AvailableNow no commit follows the last batch.
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
from barnabas.spark.limits import starting_offsets
from barnabas.spark.lookups import Cluster, check_properties, existing
from barnabas.spark.losses import report
from barnabas.spark.offsets import Nested, Offsets, flat, nested
from barnabas.spark.options import ReadSettings
from barnabas.spark.planning import (
    TASK_RECORDS,
    OffsetRange,
    admitted,
    gathered,
    ranges_between,
    shared,
    splits,
)
from barnabas.spark.reading import SplitPartition, read_splits

INITIAL, START = "@initial", "@start"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what is new, batch by batch."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._cluster = Cluster(settings)
        self._initial: Nested | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._reported: dict[TopicPartition, int] | None = None
        self._posted: dict[TopicPartition, int] = {}
        self._last_batch_s = -math.inf

    def initialOffset(self) -> Nested:  # noqa: N802 - Spark's name
        """Return where a new query starts."""
        if self._initial is None:
            check_properties(self._settings.client)
            places = self._cluster.partitions(self._settings.subscription)
            existing(self._settings.subscription, places)
            earliest, latest = self._cluster.earliest(places), self._cluster.latest(places)
            start = starting_offsets(self._settings, self._cluster, earliest, latest)
            self._initial = {INITIAL: True, **nested(start)}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch that the options name."""
        most = self._settings.max_offsets_per_trigger
        least = self._settings.min_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:  # noqa: N802 - Spark's name
        """Return how far the next batch goes; the start itself where there is nothing to do."""
        begun = position(start)
        self._post(begun)
        latest = self._latest(begun)
        if self._is_too_little(begun, latest, limit):
            return start
        self._last_batch_s = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            new = latest.keys() - begun.keys()
            latest = admitted(begun, latest, self._cluster.earliest(new), limit.max_rows)
        if latest == begun:
            return start
        mark = {START: nested(begun)} if INITIAL in start else {}
        return {**mark, **nested(latest)}

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802 - Spark's name
        """Return where the topics ended when they were last looked at, for the query's status."""
        return None if self._reported is None else nested(self._reported)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end: what comes later is for the next run."""
        self._target = self._look_up_latest()

    def partitions(self, start: Nested, end: Nested) -> Sequence[InputPartition]:
        """Return the pieces of a batch."""
        settings = self._settings
        if INITIAL in end:
            return []
        begun = position(end.get(START, start))
        ended = position(end)
        places = self._cluster.partitions(settings.subscription)
        wanted = places & (begun.keys() | ended.keys())
        plan = ranges_between(begun, ended, self._cluster.earliest(wanted))
        report(plan.losses, fail=settings.fail_on_data_loss)
        return [SplitPartition(*task) for task in self._tasks(plan.ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one piece, in a worker."""
        return read_splits(partition, self._settings)

    def commit(self, end: Nested) -> None:
        """Show in the consumer group that everything before is done."""
        self._post(position(end))

    def __getstate__(self) -> ReadSettings:
        return self._settings

    def __setstate__(self, settings: ReadSettings) -> None:
        StreamReader.__init__(self, settings)

    def _tasks(self, ranges: list[OffsetRange]) -> list[list[OffsetRange]]:
        """Share a batch out; the same ranges give the same tasks, as an exact sink wants it."""
        least = self._settings.min_partitions
        most = self._settings.max_records_per_partition
        pieces = splits(ranges, least, most)
        if least is not None or self._settings.max_partitions is not None:
            return gathered(pieces, self._settings.max_partitions)
        return shared(pieces, TASK_RECORDS if most is None else min(most, TASK_RECORDS))

    def _latest(self, begun: Offsets) -> dict[TopicPartition, int]:
        """Return where topics end; a leader that is new may tell less than there is (KIP-207)."""
        if self._target is not None:
            return self._target
        for _ in range(self._settings.lookup_retries):
            latest = self._look_up_latest()
            if all(latest[place] >= begun.get(place, 0) for place in latest):
                return latest
            time.sleep(self._settings.lookup_pause_ms / 1000)
        return self._look_up_latest()

    def _look_up_latest(self) -> dict[TopicPartition, int]:
        places = self._cluster.partitions(self._settings.subscription)
        self._reported = self._cluster.latest(places)
        return self._reported

    def _is_too_little(self, begun: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Whether to wait until more has come; never for an end that is fixed.

        The delay counts from the last time that the answer was no, as in Spark's connector, so the
        first batch of a query never waits.
        """
        least = self._settings.min_offsets_per_trigger
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        waited_ms = (time.monotonic() - self._last_batch_s) * 1000
        waiting = sum(max(0, latest[place] - begun.get(place, 0)) for place in latest)
        return waiting < least and waited_ms < self._settings.max_trigger_delay_ms

    def _post(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets and offsets != self._posted:
            self._cluster.post(self._settings.group_id, offsets)
            self._posted = offsets


def position(stored: Nested) -> dict[TopicPartition, int]:
    """Return the offsets of a position, without its marks."""
    return flat({name: value for name, value in stored.items() if not name.startswith("@")})
