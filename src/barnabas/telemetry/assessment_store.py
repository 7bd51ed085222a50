"""The judge's state on disk: one small folder for each batch.

    LAKE/_state/findings/batch-0000000042/{gpus,standing}.parquet

Batch N starts from the state after batch N-1 and leaves its own. A batch that runs again after a
crash finds the same start, comes to the same assessment and replaces what it wrote: that is all that
exactly-once needs here. Spark only ever repeats its last batch; a few more are kept for people.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.telemetry.alerts import Standing
from barnabas.telemetry.arrow import schema, table_of, write
from barnabas.telemetry.finding import Finding
from barnabas.telemetry.fleet import Fleet
from barnabas.telemetry.assessment import FleetState
from barnabas.telemetry.memory import Activity, Mark, Memory
from barnabas.telemetry.tables import FINDINGS

KEPT = 10

_GPUS = pa.schema(
    [
        ("gpu_id", pa.string()),
        ("seen", pa.int64()),
        ("hostname", pa.string()),
        ("model", pa.string()),
        ("namespace", pa.string()),
        ("xid", pa.int64()),
        ("xid_times", pa.list_(pa.int64())),
        ("recent", pa.list_(pa.list_(pa.float64()))),
        ("marks", pa.list_(pa.list_(pa.float64()))),
        ("ecc_sbe", pa.float64()),
        ("ecc_sbe_grew", pa.int64()),
        ("ecc_dbe", pa.float64()),
        ("remapped_rows", pa.float64()),
    ]
)
_STANDING = pa.schema(
    [("first_seen", pa.int64()), ("gravest", pa.string()), ("told_at", pa.int64())]
)


class StateMissingError(Exception):
    """The lake and the checkpoint do not belong together."""


class StateStore:
    """Loads and saves states, with the latest at hand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest: tuple[int, FleetState] = (-1, FleetState())

    def after(self, batch_id: int) -> FleetState:
        """Return the state after a batch; that after batch -1 knows nothing."""
        if batch_id < 0:
            return FleetState()
        if self._latest[0] != batch_id:
            self._latest = (batch_id, self._load(batch_id))
        return self._latest[1]

    def save(self, batch_id: int, state: FleetState) -> None:
        """Keep the state after a batch."""
        folder = self._of(batch_id)
        write(_gpu_table(state.fleet), folder / "gpus.parquet")
        write(_standing_table(list(state.standing.values())), folder / "standing.parquet")
        self._latest = (batch_id, state)
        shutil.rmtree(self._of(batch_id - KEPT), ignore_errors=True)

    def _of(self, batch_id: int) -> Path:
        return self._folder / f"batch-{batch_id:010d}"

    def _load(self, batch_id: int) -> FleetState:
        folder = self._of(batch_id)
        if not (folder / "standing.parquet").exists():
            raise StateMissingError(
                f"{folder} is missing, though the checkpoint says that batch {batch_id} is done; "
                "restore it, or delete the checkpoint of this job to start over"
            )
        gpus = pq.read_table(folder / "gpus.parquet")
        standing = pq.read_table(folder / "standing.parquet")
        return FleetState(_fleet(gpus), {_key(each): each for each in _standing(standing)})


def _key(standing: Standing) -> tuple[str, str]:
    return standing.latest.gpu_id, standing.latest.finding


def _gpu_table(fleet: Fleet) -> pa.Table:
    memories = fleet.gpus.values()
    arrays = [pa.array(list(fleet.gpus), pa.string())]
    for field in list(_GPUS)[1:]:
        arrays.append(pa.array([getattr(each, field.name) for each in memories], field.type))
    return pa.table(arrays, schema=_GPUS)


def _fleet(table: pa.Table) -> Fleet:
    return Fleet({row.pop("gpu_id"): _memory(row) for row in table.to_pylist()})


def _memory(row: dict[str, object]) -> Memory:
    row["xid_times"] = tuple(row["xid_times"])  # type: ignore[arg-type]
    row["marks"] = tuple(Mark(int(at), errors) for at, errors in row["marks"])  # type: ignore[attr-defined]
    row["recent"] = tuple(
        Activity(int(start), busy, int(falls), bool(mixed))
        for start, busy, falls, mixed in row["recent"]  # type: ignore[attr-defined]
    )
    return Memory(**row)  # type: ignore[arg-type]


def _standing_table(standing: list[Standing]) -> pa.Table:
    table = table_of([each.latest for each in standing], FINDINGS)
    rows = [(each.first_seen, each.severity, each.told_at) for each in standing]
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    for field, column in zip(_STANDING, columns, strict=True):
        table = table.append_column(field, pa.array(column, field.type))
    return table


def _standing(table: pa.Table) -> list[Standing]:
    latest = table.select(schema(FINDINGS).names)
    for name in ("window_start", "window_end"):
        index = latest.column_names.index(name)
        latest = latest.set_column(index, name, latest.column(name).cast(pa.int64()))
    findings = (Finding(**row) for row in latest.to_pylist())
    rest = table.select(_STANDING.names).to_pylist()
    return [
        Standing(finding, row["first_seen"], row["gravest"], row["told_at"])
        for finding, row in zip(findings, rest, strict=True)
    ]
