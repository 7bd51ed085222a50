"""The bronze job: stores every record of the topic unchanged, with its partition and offset.

Values are not parsed, so none is refused: if silver has a bug, its rows can be computed again from
this table.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.telemetry.jobs import batches
from barnabas.telemetry.jobs.batches import Report
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import Lake, arrow_schema, batch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "bronze"
COLUMNS = [column.name for column in lake_tables.BRONZE]


def write_batch(lake: Lake) -> Callable[["DataFrame", int], None]:
    """Return the function for foreachBatch."""
    started = False

    def write(rows: "DataFrame", batch_id: int) -> None:
        nonlocal started
        query_id = lake.query_id(TABLE)
        if batches.done_before(lake, TABLE, batch_id, query_id):
            return
        if not started:
            lake.remove_batch(TABLE, batch_id)
            started = True
        parts = batches.reports(rows.select(*COLUMNS), _task(lake, batch_id))
        files = [part["file"] for part in parts if part["file"]]
        count = sum(part["rows"] for part in parts)
        note = {"query": query_id, "batch": batch_id, "rows": count, "files": files}
        lake.complete(TABLE, note, files)

    return write


def _task(lake: Lake, batch_id: int) -> batches.Task:
    def write_part(part: int, records: Iterator[pa.RecordBatch]) -> Report:
        first = next(records, None)
        if first is None:
            return {"part": part, "file": None, "rows": 0}
        name = batch_name(batch_id, part)
        rows = 0
        with lake.writer(TABLE, name, arrow_schema(lake_tables.BRONZE)) as writer:
            for batch in _chain(first, records):
                writer.write(batch)
                rows += batch.num_rows
        return {"part": part, "file": f"{name}.parquet", "rows": rows}

    return write_part


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
