"""Tests retention of a lake: deleted, merged and kept files, and kills at every point."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

import pyarrow as pa

from barnabas.telemetry.jobs import batches
from barnabas.telemetry.jobs.batches import ForeignBatchError
from barnabas.telemetry.lake import lake, lake_tables
from barnabas.telemetry.lake.lake import Lake, arrow_schema, batch_name
from barnabas.telemetry.lake.lake_lock import LakeBusyError
from barnabas.telemetry.lake.lake_reading import Lake as Reader
from barnabas.telemetry.lake.lake_reading import LakeError
from barnabas.telemetry.retention import retention_plan, retention_run
from barnabas.telemetry.retention.retention_plan import DAY_US, Extent, TableFile, visible
from barnabas.telemetry.retention.retention_run import TableResult, retain

START = datetime(2026, 11, 10, tzinfo=UTC)
HOUR_US = DAY_US // 24
FORMATS = pytest.mark.parametrize("table_format", ["parquet", "delta"])


def made(folder: Path, table_format: str = "parquet", hours: int = 72) -> Lake:
    """Return a lake with a batch of silver per hour, of two parts, read by both jobs of gold."""
    place = lake.create(str(folder), table_format)
    for number in range(hours):
        rows = [
            {
                "gpu_id": f"GPU-{part}",
                "timestamp": START + timedelta(hours=number),
                "offset": number,
                "partition": part,
            }
            for part in (0, 1)
        ]
        names = [
            place.write_table(
                "silver",
                batch_name(number, part),
                pa.Table.from_pylist([row], arrow_schema(lake_tables.SILVER)),
            )
            for part, row in enumerate(rows)
        ]
        note = {"query": "q", "batch": number, "event_us": 0}
        files = [{"name": name} for name in names]
        place.complete("silver", {**note, "files": files}, names)
    for job in ("gold_10s", "gold_1m"):
        reached(folder, job, hours - 1)
    return place


def reached(folder: Path, job: str, batch: int) -> None:
    """Leave the files of a job that has committed a batch of silver in Spark."""
    place = folder / "_checkpoints" / job
    for name, text in (("offsets", f'v1\n{{"batchWatermarkMs":0}}\n{{"batch":{batch}}}'),):
        (place / name).mkdir(parents=True, exist_ok=True)
        (place / name / "7").write_text(text)
        (place / name / "8").write_text(text.replace(str(batch), str(batch + 1)))
    (place / "commits").mkdir(exist_ok=True)
    (place / "commits" / "7").write_text("v1\n{}")


def rows(folder: Path) -> list[tuple[int, int]]:
    with Reader(folder).open() as connection:
        found = connection.sql('SELECT "offset", partition FROM silver ORDER BY ALL').fetchall()
    return [tuple(row) for row in found]


def every(hours: range) -> list[tuple[int, int]]:
    return [(hour, part) for hour in hours for part in (0, 1)]


def of_silver(results: list[TableResult]) -> TableResult:
    return next(each for each in results if each.table == "silver")


def parquet_files(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "silver").glob("*.parquet"))


@FORMATS
def test_old_files_go_and_those_of_a_day_are_merged(tmp_path: Path, table_format: str) -> None:
    made(tmp_path, table_format)
    result = of_silver(retain(tmp_path, {"silver": DAY_US}))
    assert rows(tmp_path) == every(range(47, 72))
    assert (len(result.plan.expired), len(result.plan.merges)) == (94, 1)
    # The newest batch may run again and stays as it is; so does the last hour of the day before.
    assert parquet_files(tmp_path) == [
        *(f"batch-00000000{hour}-part-000{part}.parquet" for hour in (47, 71) for part in (0, 1)),
        "merged-0000000048-0000000070.parquet",
    ]


@FORMATS
def test_without_a_duration_nothing_goes_and_each_day_is_a_file(
    tmp_path: Path, table_format: str
) -> None:
    made(tmp_path, table_format)
    retain(tmp_path, {})
    assert rows(tmp_path) == every(range(72))
    merged = [name for name in parquet_files(tmp_path) if retention_plan.is_merged(name)]
    assert len(merged) == 3
    assert retain(tmp_path, {})
    assert [name for name in parquet_files(tmp_path) if retention_plan.is_merged(name)] == merged


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    before = parquet_files(tmp_path)
    result = of_silver(retain(tmp_path, {"silver": DAY_US}, dry_run=True))
    assert len(result.plan.expired) == 94
    assert parquet_files(tmp_path) == before


def test_what_a_job_has_not_read_stays(tmp_path: Path) -> None:
    made(tmp_path)
    reached(tmp_path, "gold_1m", 20)
    result = of_silver(retain(tmp_path, {"silver": DAY_US}))
    assert rows(tmp_path) == every(range(21, 72))
    assert result.plan.waiting == 2 * (47 - 21)
    assert result.plan.merges == ()


def test_a_table_that_a_job_never_read_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "_checkpoints" / "gold_1m" / "commits" / "7").unlink()
    retain(tmp_path, {"silver": DAY_US})
    assert rows(tmp_path) == every(range(72))


def test_merged_files_are_merged_again_and_columns_that_came_later_are_null_before(
    tmp_path: Path,
) -> None:
    place = made(tmp_path, hours=12)
    retain(tmp_path, {})
    for number in range(12, 24):
        table = pa.table(
            {
                "timestamp": pa.array([START + timedelta(hours=number)], pa.timestamp("us", "UTC")),
                "offset": [number],
                "partition": pa.array([0], pa.int32()),
                "later": [1.5],
            }
        )
        place.write_table("silver", batch_name(number), table)
        place.complete("silver", {"query": "q", "batch": number, "files": []}, [])
    for job in ("gold_10s", "gold_1m"):
        reached(tmp_path, job, 23)
    retain(tmp_path, {})
    assert parquet_files(tmp_path)[-1] == "merged-0000000000-0000000022.parquet"
    with Reader(tmp_path).open() as connection:
        answer = connection.sql("SELECT later, count(*) FROM silver GROUP BY ALL ORDER BY ALL")
        assert answer.fetchall() == [(1.5, 12), (None, 24)]


class KilledError(BaseException):
    """Stands for kill -9: error handlers must not catch it."""


@contextmanager
def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Allow a number of changes to files, and end the process before the next."""
    done: list[str] = []

    def counted(name: str, original: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if len(done) == steps:
                raise KilledError
            done.append(name)
            return original(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", counted("unlink", Path.unlink))
        patched.setattr(Path, "rename", counted("rename", Path.rename))
        patched.setattr(retention_run, "_sync", counted("sync", retention_run._sync))
        patched.setattr(os, "link", counted("link", os.link))
        yield done


@FORMATS
def test_a_kill_at_any_point_leaves_a_lake_that_reads_the_same(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for steps in range(200):
        folder = tmp_path / f"{steps}"
        made(folder, table_format, hours=10)
        with killed_after(steps, monkeypatch) as done:
            try:
                retain(folder, {})
            except KilledError:
                is_killed = True
            else:
                is_killed = False
        assert rows(folder) == every(range(10)), f"after {done}"
        retain(folder, {})
        assert rows(folder) == every(range(10)), f"after {done} and another run"
        assert "merged-0000000000-0000000008.parquet" in parquet_files(folder)
        assert len(parquet_files(folder)) == 3
        if not is_killed:
            break
    assert steps > 20


@FORMATS
def test_a_kill_while_old_files_go_leaves_the_newer_ones(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for steps in (0, 1, 2, 5, 9):
        folder = tmp_path / f"{steps}"
        made(folder, table_format, hours=10)
        with killed_after(steps, monkeypatch), pytest.raises(KilledError):
            retain(folder, {"silver": 2 * HOUR_US}, merge=False)
        assert set(every(range(7, 10))) <= set(rows(folder)) <= set(every(range(10)))
        retain(folder, {"silver": 2 * HOUR_US}, merge=False)
        assert rows(folder) == every(range(7, 10))


@FORMATS
def test_a_reader_that_began_before_gets_a_sentence_and_reads_the_next_time(
    tmp_path: Path, table_format: str
) -> None:
    made(tmp_path, table_format)
    reader = Reader(tmp_path)

    def read() -> None:
        with reader.open() as connection:
            retain(tmp_path, {})
            connection.sql("SELECT count(*) FROM silver").fetchall()

    with pytest.raises(LakeError, match="retention was just replacing it"):
        read()
    assert rows(tmp_path) == every(range(72))


def test_one_retention_at_a_time(tmp_path: Path) -> None:
    made(tmp_path)
    with retention_run.held(tmp_path), pytest.raises(LakeBusyError, match="Another retention"):
        retain(tmp_path, {})


def test_a_delta_log_and_its_jobs_continue_after_a_merge(tmp_path: Path) -> None:
    place = made(tmp_path, "delta", hours=10)
    retain(tmp_path, {})
    row = {"gpu_id": "GPU-0", "timestamp": START, "offset": 10, "partition": 0}
    name = place.write_table(
        "silver", batch_name(10), pa.Table.from_pylist([row], arrow_schema(lake_tables.SILVER))
    )
    place.complete("silver", {"query": "q", "batch": 10, "files": []}, [name])
    assert rows(tmp_path) == [*every(range(10)), (10, 0)]


def test_notes_go_with_their_files_but_for_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_run, "NOTES_KEPT", 30)
    place = made(tmp_path)
    retain(tmp_path, {"silver": DAY_US})
    notes = place.names("_batches/silver")
    assert notes[0] == f"{batch_name(42)}.json"
    assert len(notes) == 30
    assert place.last_batch("silver") == 71


def test_a_new_checkpoint_on_a_lake_without_its_first_notes_is_refused(tmp_path: Path) -> None:
    place = made(tmp_path, hours=5)
    (tmp_path / "_batches" / "silver" / f"{batch_name(0)}.json").unlink()
    with pytest.raises(ForeignBatchError, match="of another run"):
        batches.done_before(place, "silver", 0, "q")


@given(st.sets(st.integers(0, 30)), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_of_files_that_stand_for_each_other_the_outermost_is_read(
    numbers: set[int], ranges: list[tuple[int, int]]
) -> None:
    merged = {
        f"{retention_plan.merged_name(Extent(min(each), max(each)))}.parquet"
        for each in ranges
        if all(
            not (
                min(each) < min(o) <= max(each) < max(o) or min(o) < min(each) <= max(o) < max(each)
            )
            for o in ranges
        )
    }
    names = sorted({f"{batch_name(number)}.parquet" for number in numbers} | merged)
    shown = visible([*names, "other.parquet"])
    extents = [extent for name in shown if (extent := retention_plan.extent_of(name)) is not None]
    covered = [n for extent in extents for n in range(extent.first, extent.last + 1)]
    assert len(covered) == len(set(covered))
    assert set(covered) >= numbers
    assert "other.parquet" in shown


def test_batches_without_rows_do_not_part_a_day() -> None:
    files = [
        TableFile(
            f"{batch_name(number)}.parquet",
            Extent(number, number),
            DAY_US if number % 3 == 0 else 0,
            DAY_US if number % 3 == 0 else 0,
            1 if number % 3 == 0 else 0,
            100,
        )
        for number in range(20)
    ]
    found = retention_plan.plan(files, cutoff_us=None, consumed=19)
    assert [len(group) for group in found.merges] == [20]
