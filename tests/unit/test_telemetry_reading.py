"""Tests lakes on disk that are half-written, empty, or of another format."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from barnabas.telemetry.lake.lake_reading import Lake, LakeError
from barnabas.telemetry.lake.lake_tables import TABLES
from barnabas.telemetry.lake.querying import ask, listings
from tests.support.pipelines.lake import h200, write_lake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_lake(tmp_path / "lake", h200(), samples_per_window=2)


def test_files_still_being_written_are_left_out(folder: Path) -> None:
    before = ask(Lake(folder), "SELECT count(*) FROM findings").rows
    whole = next((folder / "findings").iterdir())
    shutil.copy(whole, folder / "findings" / ".batch-0000000001.parquet")
    shutil.copytree(folder / "findings", folder / "_temporary")
    (folder / "findings" / "_spark").mkdir()
    shutil.copy(whole, folder / "findings" / "_spark" / "part.parquet")
    assert ask(Lake(folder), "SELECT count(*) FROM findings").rows == before
    assert "_temporary" not in Lake(folder).tables


def test_a_batch_written_as_a_folder_is_read(folder: Path) -> None:
    whole = next((folder / "findings").iterdir())
    nested = folder / "findings" / "batch-0000000001.parquet"
    nested.mkdir()
    shutil.copy(whole, nested / "part-0.parquet")
    (count,) = ask(Lake(folder), "SELECT count(*) FROM findings").rows[0]
    whole.unlink()
    assert ask(Lake(folder), "SELECT 2 * count(*) FROM findings").rows == [(count,)]


def test_a_complete_lake_has_every_table_and_column(folder: Path) -> None:
    shutil.rmtree(folder / "alerts")
    with Lake(folder).open(complete=True) as connection:
        for name, columns in TABLES.items():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            assert [row[0] for row in described] == [column.name for column in columns]
        assert connection.execute("SELECT count(*) FROM alerts").fetchone() == (0,)


def test_delta_tables_are_read_by_their_log(folder: Path, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    import pyarrow.parquet as pq

    rows = pq.read_table(next((folder / "findings").iterdir()))
    shutil.rmtree(folder / "findings")
    deltalake.write_deltalake(str(folder / "findings"), rows)
    deltalake.write_deltalake(str(folder / "findings"), rows, mode="overwrite")
    assert ask(Lake(folder), "SELECT count(*) FROM findings").rows == [(rows.num_rows,)]
    with Lake(folder).open(complete=True) as connection:
        assert connection.execute("SELECT count(*) FROM findings").fetchone() == (rows.num_rows,)


def test_what_is_no_lake_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"There is no lake at .*nowhere"):
        Lake(tmp_path / "nowhere")
    with pytest.raises(LakeError, match=r"holds no tables yet.*telemetry run"):
        listings(Lake(tmp_path))


def test_a_broken_file_is_named(folder: Path) -> None:
    (folder / "findings" / "batch-0000000009.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(LakeError, match="batch-0000000009"):
        listings(Lake(folder))
