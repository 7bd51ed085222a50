"""Writes a Delta Lake log beside the Parquet files, which lists the files of a table.

Files are added without rewriting them. Each commit has the job's id and the batch as an application
transaction, so that a batch that runs again is added once.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from barnabas.telemetry.lake.lake import Lake


def add_files(lake: "Lake", table: str, names: Sequence[str], job: str, batch_id: int) -> None:
    """Add the files of a batch to the table's log, unless it has them."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import (
        CommitProperties,
        Transaction,
        create_table_with_add_actions,
    )

    if not names:
        return
    place = lake.path(table)
    schema = Schema.from_arrow(_footer(lake, table, names[0]).schema.to_arrow_schema())
    actions = [_action(lake, table, name) for name in names]
    marked = CommitProperties(app_transactions=[Transaction(job, batch_id)])
    if not DeltaTable.is_deltatable(place):
        create_table_with_add_actions(place, schema, actions, commit_properties=marked)
        return
    known = DeltaTable(place)
    done = known.transaction_version(job)
    if done is None or done < batch_id:
        there = {field.name for field in known.schema().fields}
        added = [field for field in schema.fields if field.name not in there]
        if added:  # by a later version; null in the files before it
            known.alter.add_columns(added)
        known.create_write_transaction(actions, "append", schema, commit_properties=marked)


def _footer(lake: "Lake", table: str, name: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    return pq.ParquetFile(f"{table}/{name}", filesystem=lake.files()).metadata


def _action(lake: "Lake", table: str, name: str) -> Any:  # noqa: ANN401 - deltalake is untyped here
    from deltalake.transaction import AddAction

    info = lake.files().get_file_info(f"{table}/{name}")
    stats = json.dumps({"numRecords": _footer(lake, table, name).num_rows})
    return AddAction(name, info.size, {}, info.mtime_ns // 1_000_000, True, stats)
