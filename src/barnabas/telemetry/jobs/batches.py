"""Runs one micro-batch of a job, from `foreachBatch` to its note in the lake.

Tasks write files and report on them; the driver collects the reports and completes the batch. Files
of a task are named after batch and partition, so that a second attempt replaces the first.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.telemetry.lake.lake import Lake, Note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Report = dict[str, Any]
Task = Callable[[int, Iterator[pa.RecordBatch]], Report]
"""Takes the number of the partition and its rows, returns a report for the driver."""


class ForeignBatchError(Exception):
    """The lake holds a batch of another checkpoint under the same number."""


def reports(rows: "DataFrame", task: Task) -> list[Report]:
    """Run a task on each partition, on the executors, and return the reports in order."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this runs inside a task"
        report = task(context.partitionId(), batches)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    found = rows.mapInArrow(run, "report string").collect()
    return sorted((json.loads(row.report) for row in found), key=lambda report: report["part"])


def done_before(lake: Lake, table: str, batch_id: int, query_id: str) -> bool:
    """Return whether the batch is complete; a crash may happen before Spark's own commit."""
    note = lake.note(table, batch_id)
    # Retention removes old notes, so a new checkpoint could write its first batch.
    is_foreign = note is None and batch_id == 0 and lake.last_batch(table) > 0
    if is_foreign or (note is not None and note["query"] != query_id):
        raise ForeignBatchError(
            f"{lake.path(table)} holds batch {batch_id} of another run: its checkpoint was "
            f"removed or replaced. Restore {lake.checkpoint(table)}, or start with an empty lake"
        )
    return note is not None


def note_before(lake: Lake, table: str, batch_id: int) -> Note:
    """Return the note of the previous batch; empty for the first."""
    if batch_id == 0:
        return {}
    note = lake.note(table, batch_id - 1)
    if note is None:
        raise ForeignBatchError(
            f"{lake.path(table)} lacks the note of batch {batch_id - 1}, which Spark's checkpoint "
            "counts as done. Restore the lake's _batches folder, or start with an empty lake"
        )
    return note
