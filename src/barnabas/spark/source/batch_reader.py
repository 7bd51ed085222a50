"""The reader behind `spark.read`: looks up the start and end offsets once and plans the splits."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.model.ids import TopicPartition
from barnabas.spark.source.data_loss import report
from barnabas.spark.source.lookups import Cluster, check_properties, existing
from barnabas.spark.source.offset_json import Offsets
from barnabas.spark.source.offset_limits import ending_offsets, starting_offsets
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.split_planning import (
    OffsetRange,
    gathered,
    ranges_between,
    splits,
    truncation_message,
)
from barnabas.spark.source.split_reading import SplitPartition, read_splits


class BatchReader(DataSourceReader):
    """Reads what lies between `startingOffsets` and `endingOffsets`."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        """Look offsets up and return the pieces to read."""
        check_properties(self._settings.client)
        cluster = Cluster(self._settings)
        places = cluster.topics(self._settings.subscription).partitions
        existing(self._settings.subscription, places)
        earliest, latest = cluster.earliest(places), cluster.latest(places)
        start = starting_offsets(self._settings, cluster, earliest, latest)
        end = ending_offsets(self._settings, cluster, earliest, latest)
        plan = self._plan(start, end, earliest, latest)
        return [SplitPartition(*task) for task in gathered(plan, self._settings.max_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one piece, in a worker."""
        return read_splits(partition, self._settings)

    def _plan(
        self, start: Offsets, end: Offsets, earliest: Offsets, latest: Offsets
    ) -> list[OffsetRange]:
        settings = self._settings
        early = [place for place in end if end[place] > max(latest[place], start[place])]
        losses = [truncation_message(place, latest[place], end[place]) for place in sorted(early)]
        reached = {place: min(end[place], latest[place]) for place in end}
        plan = ranges_between(start, _not_before(reached, start), earliest)
        report([*losses, *plan.losses], fail=settings.fail_on_data_loss)
        return splits(plan.ranges, settings.min_partitions, settings.max_records_per_partition)


def _not_before(end: Offsets, start: Offsets) -> dict[TopicPartition, int]:
    """An end before the start means that there is nothing to read."""
    return {place: max(end[place], start[place]) for place in end}
