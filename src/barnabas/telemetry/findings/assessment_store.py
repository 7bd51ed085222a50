"""Stores the state of assessments in the lake: three small files for each batch.

    LAKE/_work/findings-gpus/batch-0000000042.parquet        the memory of each GPU
    LAKE/_work/findings-standing/batch-0000000042.parquet    alerts: pending, standing, at rest
    LAKE/_work/findings-groups/batch-0000000042.parquet      the groups of cards

Batch N starts from the state after batch N-1 and stores its own. A batch that runs again after a
crash has the same start and the same result, and replaces its files: that is enough for exactly
once. Spark only repeats its last batch; a few more are kept for analysis.
"""

import json
from typing import Any

import pyarrow as pa

from barnabas.telemetry.findings.alert_groups import Group, GroupKey, Groups, Member
from barnabas.telemetry.findings.alerts import Alert, Phase, Standing
from barnabas.telemetry.findings.assessment import FleetState
from barnabas.telemetry.findings.fleet import Fleet
from barnabas.telemetry.findings.gpu_history import Activity, Mark, Memory
from barnabas.telemetry.lake.arrow import findings_from, table_of
from barnabas.telemetry.lake.lake import WORK, Lake, batch_name
from barnabas.telemetry.lake.lake_tables import FINDINGS

GPUS = f"{WORK}/findings-gpus"
STANDING = f"{WORK}/findings-standing"
GROUPS = f"{WORK}/findings-groups"
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
        ("sm_clock_top", pa.float64()),
        ("interval_s", pa.float64()),
        ("heard", pa.int64()),
    ]
)
_STANDING = pa.schema(
    [
        ("first_seen", pa.int64()),
        ("gravest", pa.string()),
        ("told_at", pa.int64()),
        ("phase", pa.string()),
        ("raises", pa.list_(pa.int64())),
    ]
)
_GROUPS = pa.schema([("group", pa.string())])
_COLUMNS = [each.name for each in FINDINGS]


class StateMissingError(Exception):
    """The lake and the checkpoint do not belong together."""


class StateStore:
    """Loads and saves states; keeps the latest in memory."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._latest: tuple[int, FleetState] = (-1, FleetState())

    def after(self, batch_id: int) -> FleetState:
        """Return the state after a batch; that after batch -1 is empty."""
        if batch_id < 0:
            return FleetState()
        if self._latest[0] != batch_id:
            self._latest = (batch_id, self._load(batch_id))
        return self._latest[1]

    def save(self, batch_id: int, state: FleetState) -> None:
        """Store the state after a batch."""
        name = batch_name(batch_id)
        self._lake.write_table(GPUS, name, _gpu_table(state.fleet))
        self._lake.write_table(STANDING, name, _standing_table(list(state.standing.values())))
        self._lake.write_table(GROUPS, name, _group_table(state.groups))
        self._latest = (batch_id, state)
        for folder in (GPUS, STANDING, GROUPS):
            self._lake.remove(folder, [f"{batch_name(batch_id - KEPT)}.parquet"])

    def _load(self, batch_id: int) -> FleetState:
        file = f"{batch_name(batch_id)}.parquet"
        if file not in self._lake.names(GPUS) or file not in self._lake.names(STANDING):
            raise StateMissingError(
                f"{self._lake.path(GPUS, file)} is missing, though the checkpoint says that batch "
                f"{batch_id} is done; restore it, or start with an empty lake"
            )
        gpus = self._lake.read_table(GPUS, [file], None)  # of 0.1, it lacks interval_s
        standing = self._lake.read_table(STANDING, [file], [*_COLUMNS, *_STANDING.names])
        groups: Groups = {}
        if file in self._lake.names(GROUPS):  # a batch of an earlier version left none
            groups = _groups(self._lake.read_table(GROUPS, [file], _GROUPS.names))
        return FleetState(_fleet(gpus), {_key(each): each for each in _standing(standing)}, groups)


def _key(standing: Standing) -> tuple[str, str]:
    return standing.latest.gpu_id, standing.latest.finding


def _gpu_table(fleet: Fleet) -> pa.Table:
    memories = fleet.gpus.values()
    arrays = [
        pa.array([getattr(each, field.name) for each in memories], field.type)
        for field in list(_GPUS)[1:]
    ]
    return pa.table([pa.array(list(fleet.gpus), pa.string()), *arrays], schema=_GPUS)


def _fleet(table: pa.Table) -> Fleet:
    return Fleet({row.pop("gpu_id"): _memory(row) for row in table.to_pylist()})


def _memory(row: dict[str, Any]) -> Memory:
    row["xid_times"] = tuple(row["xid_times"])
    row["marks"] = tuple(Mark(int(at), errors) for at, errors in row["marks"])
    row["recent"] = tuple(
        Activity(int(start), idle, busy, int(falls), bool(mixed))
        for start, idle, busy, falls, mixed in row["recent"]
    )
    return Memory(**row)


def _standing_table(standing: list[Standing]) -> pa.Table:
    table = table_of([each.latest for each in standing], FINDINGS)
    rows = [
        (each.first_seen, each.severity, each.announced_at, each.phase.value, each.raises)
        for each in standing
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_STANDING)
    for field, column in zip(_STANDING, columns, strict=True):
        table = table.append_column(field, pa.array(column, field.type))
    return table


def _standing(table: pa.Table) -> list[Standing]:
    rest = table.select([name for name in _STANDING.names if name in table.column_names])
    return [
        Standing(
            finding,
            row["first_seen"],
            row["gravest"],
            row["told_at"],
            _phase(row),
            tuple(row.get("raises", ())),
        )
        for finding, row in zip(findings_from(table), rest.to_pylist(), strict=True)
    ]


def _phase(row: dict[str, Any]) -> Phase:
    """Return the phase; a row of an earlier version counts as raised once it was announced."""
    is_announced = row["told_at"] is not None
    return Phase(row.get("phase", Phase.RAISED if is_announced else Phase.PENDING))


def _group_table(groups: Groups) -> pa.Table:
    texts = [
        json.dumps([key, group.announced, group.announced_at, list(group.members.values())])
        for key, group in groups.items()
    ]
    return pa.table([pa.array(texts, pa.string())], schema=_GROUPS)


def _groups(table: pa.Table) -> Groups:
    found = {}
    for text in table.column("group").to_pylist():
        key, announced, announced_at, members = json.loads(text)
        cards = [Member(_alert(alert), flaps) for alert, flaps in members]
        found[GroupKey(*key)] = Group(
            _alert(announced), announced_at, {each.alert.gpu_id: each for each in cards}
        )
    return found


def _alert(values: list[Any]) -> Alert:
    return Alert._make([*values[:-1], tuple(values[-1])])
