"""Tests that files of the lake appear complete, under names of their batch."""

from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.telemetry.lake import lake, lake_tables

ROWS = pa.table({"n": [1, 2]})


def test_a_file_replaces_its_former_self(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path / "lake"))
    for rows in (ROWS, ROWS.slice(1)):
        assert place.write_table("parts", lake.batch_name(7), rows) == "batch-0000000007.parquet"
    assert place.names("parts") == ["batch-0000000007.parquet"]
    assert place.read_table("parts", place.names("parts"), ["n"]) == ROWS.slice(1)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    with (
        pytest.raises(ValueError, match="names"),
        place.writer("silver", "x", ROWS.schema) as writer,
    ):
        writer.write(pa.table({"other": [1]}))
    assert list((tmp_path / "silver").iterdir()) == []


def test_files_of_a_batch_are_removed_together(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    for batch, part in ((1, 0), (1, 1), (10, 0)):
        place.write_table("silver", lake.batch_name(batch, part), ROWS)
    place.remove_batch("silver", 1)
    assert place.names("silver") == ["batch-0000000010-part-0000.parquet"]


def test_notes_by_batch(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    place.complete("silver", {"batch": 0, "query": "q", "rows": 3}, [])
    assert place.note("silver", 0) == {"batch": 0, "query": "q", "rows": 3}
    assert place.note("silver", 1) is None
    assert place.note("silver", -1) is None


def test_a_column_of_a_later_version_shows_in_the_delta_log(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    place = lake.create(str(tmp_path), "delta")
    for batch, rows in enumerate((ROWS, ROWS.append_column("later", pa.array([["x"], []])))):
        name = place.write_table("alerts", lake.batch_name(batch), rows)
        place.complete("alerts", {"query": "q", "batch": batch}, [name])
    found = deltalake.DeltaTable(place.path("alerts")).to_pyarrow_table()
    assert sorted(found.column_names) == ["later", "n"]
    assert found.num_rows == 4
    assert found["later"].null_count == 2


def test_unknown_table_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'iceberg' must be one of parquet, delta"):
        lake.create(str(tmp_path), "iceberg")


def test_every_table_has_an_arrow_schema() -> None:
    for columns in lake_tables.TABLES.values():
        assert lake.arrow_schema(columns).names == [column.name for column in columns]


def test_where_things_are_by_uri() -> None:
    assert lake.Lake("s3://bucket/lake/").path("silver") == "s3://bucket/lake/silver"


def test_a_column_that_an_older_file_lacks_is_null(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    old = pa.table({"gpu_id": ["a"], "gpu_util": [97.0]})
    place.write_table("silver", lake.batch_name(1), old)
    found = place.read_table("silver", place.names("silver"), ["gpu_id", "pcie_tx"])
    assert found.to_pylist() == [{"gpu_id": "a", "pcie_tx": None}]


def test_a_column_of_a_later_version_is_added_to_a_delta_table(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'barnabas[telemetry]'")
    place = lake.create(str(tmp_path), "delta")
    for batch, rows in enumerate((pa.table({"a": [1]}), pa.table({"a": [2], "b": [1.5]}))):
        file = place.write_table("gold_10s", lake.batch_name(batch), rows)
        place.complete("gold_10s", {"query": "q", "batch": batch}, [file])
    table = deltalake.DeltaTable(str(tmp_path / "gold_10s")).to_pyarrow_dataset().to_table()
    assert table.sort_by("a").to_pydict() == {"a": [1, 2], "b": [None, 1.5]}
