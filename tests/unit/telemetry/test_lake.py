"""Files of the lake appear whole, under names of their batch."""

from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.telemetry import lake, tables

ROWS = pa.table({"n": [1, 2]})


def test_a_file_replaces_its_former_self(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path / "lake"))
    for rows in (ROWS, ROWS.slice(1)):
        assert place.write_table("silver", lake.batch_name(7), rows) == "batch-0000000007.parquet"
    assert place.names("silver") == ["batch-0000000007.parquet"]
    assert place.read_table("silver", place.names("silver"), ["n"]) == ROWS.slice(1)


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


def test_unknown_table_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'iceberg' must be one of parquet, delta"):
        lake.create(str(tmp_path), "iceberg")


def test_every_table_has_an_arrow_schema() -> None:
    for columns in tables.TABLES.values():
        assert lake.arrow_schema(columns).names == [column.name for column in columns]


def test_where_things_are_by_uri() -> None:
    assert lake.Lake("s3://bucket/lake/").path("silver") == "s3://bucket/lake/silver"
