"""Writes the lake: a folder of tables, each a folder of Parquet files named by micro-batch.

    LAKE/silver/batch-0000000042-part-0001.parquet    what a task of batch 42 wrote
    LAKE/gold_10s/batch-0000000042.parquet            what the driver wrote
    LAKE/silver/merged-0000000010-0000000042.parquet  stands for batches 10 to 42 (`retention`)
    LAKE/_batches/silver/batch-0000000042.json        batch 42 is complete, and what it holds
    LAKE/_work/...                                    files that only the jobs read
    LAKE/_checkpoints/...                             Spark's checkpoints
    LAKE/_lake/source.json                            the topic of the lake

A file is written under a hidden name and renamed, so that readers see complete files only. A batch
is complete once its note exists in `_batches`, which is written last: a batch that runs again after
a crash finds its note and does nothing, or replaces only its own files. So foreachBatch, which may
run a batch again, writes exactly once.

Workers and driver see the same folder: on a cluster it is a shared mount, or anything else that
`pyarrow.fs` reaches by a URI.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from barnabas.telemetry.lake import delta, lake_tables
from barnabas.telemetry.lake.lake_tables import Column

NOTES = "_batches"
WORK = "_work"
CHECKPOINTS = "_checkpoints"
FORMATS = ("parquet", "delta")
ROW_GROUP_ROWS = 65_536
"""Rows are nearly in the order of time, so that a reader of one window skips most groups."""

_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "double": pa.float64(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    ),
    "array<struct<timestamp:timestamp,xid:int>>": pa.list_(
        pa.struct([("timestamp", pa.timestamp("us", tz="UTC")), ("xid", pa.int32())])
    ),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}
Note = dict[str, Any]


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in columns])


def batch_name(batch_id: int, part: int | None = None) -> str:
    """Return the name of a batch's file, without its ending."""
    return f"batch-{batch_id:010d}" + ("" if part is None else f"-part-{part:04d}")


@dataclass(frozen=True)
class Lake:
    """A lake by its folder or URI. The object is small, and Spark sends it to workers."""

    root: str
    table_format: str = "parquet"
    """`parquet`, or `delta` for a Delta log beside the same files."""

    def path(self, *parts: str) -> str:
        """Return the full path or URI of something in the lake, for Spark and other readers."""
        return "/".join((self.root.rstrip("/"), *parts))

    def checkpoint(self, job: str) -> str:
        """Return the path of a job's checkpoint."""
        return self.path(CHECKPOINTS, job)

    def write_table(self, folder: str, name: str, rows: pa.Table) -> str:
        """Write one Parquet file of a folder and return its name."""
        with self.writer(folder, name, rows.schema) as writer:
            writer.write(rows)
        return f"{name}.parquet"

    def writer(self, folder: str, name: str, schema: pa.Schema) -> "PartWriter":
        """Return a writer of one Parquet file, which appears when the writer is closed."""
        return PartWriter(self, folder, f"{name}.parquet", schema)

    def read_table(
        self,
        folder: str,
        names: Iterable[str],
        columns: Sequence[str] | None,
        where: object = None,
    ) -> pa.Table:
        """Read columns of some files of a folder; None for all columns.

        A column of a table that an older file lacks is null.
        """
        of_table = (
            arrow_schema(lake_tables.TABLES[folder]) if folder in lake_tables.TABLES else None
        )
        found = [
            pq.read_table(
                f"{folder}/{name}",
                columns=columns,
                filters=where,
                filesystem=self.files(),
                schema=of_table,
            )
            for name in names
        ]
        return pa.concat_tables(found)

    def note(self, table: str, batch_id: int) -> Note | None:
        """Return the note of a complete batch of a table; None if there is none."""
        text = self.text(f"{NOTES}/{table}/{batch_name(batch_id)}.json") if batch_id >= 0 else None
        return None if text is None else json.loads(text)

    def last_batch(self, table: str) -> int:
        """Return the number of the newest complete batch of a table; -1 if there is none."""
        names = self.names(f"{NOTES}/{table}")
        return int(names[-1].removeprefix("batch-").removesuffix(".json")) if names else -1

    def complete(self, table: str, note: Note, files: Sequence[str]) -> None:
        """Mark a batch as complete; the note names its query and batch."""
        batch_id = note["batch"]
        if self.table_format == "delta":
            delta.add_files(self, table, files, f"{table}-{note['query']}", batch_id)
        self.put(f"{NOTES}/{table}/{batch_name(batch_id)}.json", json.dumps(note).encode())

    def query_id(self, job: str) -> str:
        """Return the id that Spark gave the job with its checkpoint."""
        text = self.text(f"{CHECKPOINTS}/{job}/metadata")
        assert text is not None, f"{job} has no checkpoint under {self.root}"
        return str(json.loads(text)["id"])

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove files that are no longer needed; ignore missing ones."""
        files = self.files()
        for name in names:
            if files.get_file_info(f"{folder}/{name}").type is fs.FileType.File:
                files.delete_file(f"{folder}/{name}")

    def remove_batch(self, folder: str, batch_id: int) -> None:
        """Remove all files of a batch, which an incomplete run may have written."""
        start = batch_name(batch_id)
        self.remove(folder, [name for name in self.names(folder) if name.startswith(start)])

    def names(self, folder: str) -> list[str]:
        """Return the names of the files of a folder, in order."""
        listing = fs.FileSelector(folder, allow_not_found=True)
        found = self.files().get_file_info(listing)
        return sorted(f.base_name for f in found if not f.base_name.startswith((".", "_")))

    def files(self) -> fs.FileSystem:
        """Return the file system, rooted in the lake."""
        if "://" in self.root:
            base, path = fs.FileSystem.from_uri(self.root)
            return fs.SubTreeFileSystem(path, base)
        return fs.SubTreeFileSystem(self.root, fs.LocalFileSystem())

    def text(self, path: str) -> str | None:
        """Return the text of a small file; None if it does not exist."""
        files = self.files()
        if files.get_file_info(path).type is not fs.FileType.File:
            return None
        with files.open_input_stream(path) as stream:
            return str(stream.read(), "utf-8")

    def put(self, path: str, content: bytes) -> None:
        """Write a small file, which appears complete and replaces an earlier one."""
        files = self.files()
        folder, _, name = path.rpartition("/")
        files.create_dir(folder)
        with files.open_output_stream(f"{folder}/.{name}.draft") as stream:
            stream.write(content)
        files.move(f"{folder}/.{name}.draft", path)


class PartWriter:
    """Writes one Parquet file; it appears, complete, when the `with` block ends without an error.

    Text repeats from row to row and is stored with a dictionary; numbers and raw bytes are not.
    """

    def __init__(self, lake: Lake, folder: str, name: str, schema: pa.Schema) -> None:
        self._files = lake.files()
        self._draft = f"{folder}/.{name}.draft"
        self._place = f"{folder}/{name}"
        self._schema = schema
        self._files.create_dir(folder)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        texts += [f"{f.name}.key_value.key" for f in schema if pa.types.is_map(f.type)]
        self._writer = pq.ParquetWriter(
            self._draft,
            schema,
            filesystem=self._files,
            compression="zstd",
            compression_level=1,
            use_dictionary=texts,
        )

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows."""
        self._writer.write(rows.cast(self._schema), row_group_size=ROW_GROUP_ROWS)

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._writer.close()
        if kind is None:
            self._files.move(self._draft, self._place)
        else:
            self._files.delete_file(self._draft)


def create(root: str, table_format: str = "parquet") -> Lake:
    """Return the lake at a folder or URI, with a folder for each table."""
    if table_format not in FORMATS:
        raise ValueError(f"table format {table_format!r} must be one of {', '.join(FORMATS)}")
    lake = Lake(root, table_format)
    if "://" not in root:
        fs.LocalFileSystem().create_dir(root)
    for name in lake_tables.TABLES:
        lake.files().create_dir(name)
        lake.files().create_dir(f"{NOTES}/{name}")
    return lake
