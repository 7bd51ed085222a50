"""`barnabas log`: print and check segment files, without a broker."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, say

if TYPE_CHECKING:
    from barnabas.cli.log.segment_files import Batch
    from barnabas.protocol.records import BatchHeader, Record

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...", help="Segment files, partition directories or data directories."
    ),
]


@app.command(epilog="Example: barnabas log dump data/orders-0 --records --from 1000 -n 5")
def dump(
    paths: Paths,
    records: Annotated[
        bool, typer.Option("--records", "-r", help="Show the records in each batch.")
    ] = False,
    start: Annotated[
        int, typer.Option("--from", metavar="OFFSET", help="Skip batches before this offset.")
    ] = 0,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Maximum number of batches per file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per batch.")
    ] = False,
) -> None:
    """Print the batches of segment files, and their records."""
    from barnabas.cli.log.segment_files import find_segments

    for path in find_segments(paths):
        if not as_json:
            say(f"{path}  {path.stat().st_size:,} bytes")
        for batch in islice(_batches(path, start), count):
            if as_json:
                sys.stdout.write(json.dumps(_as_json(path, batch, records=records)) + "\n")
            else:
                _show(batch, records=records)


@app.command("verify", epilog="Example: barnabas log verify data --deep")
def verify_logs(
    paths: Paths,
    deep: Annotated[
        bool, typer.Option("--deep", help="Decompress every batch and read every record.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check structure, checksums and offsets; exit code 1 if anything is wrong."""
    from barnabas.cli.log.segment_files import check_segment, find_segments

    findings = [check_segment(path, deep=deep) for path in find_segments(paths)]
    bad = [each for each in findings if not each.is_sound]
    if as_json:
        print_json([asdict(each) for each in findings])
    else:
        for each in bad:
            say(f"{each.file}: byte {each.problem_position:,}: {each.problem}")
        totals = plural(sum(each.records for each in findings), "record")
        say(f"{plural(len(findings), 'file')}, {totals}, {len(bad)} with problems")
    if bad:
        sys.exit(1)


def _batches(path: Path, start: int) -> "Iterator[Batch]":
    from barnabas.cli.log.segment_files import batches, opened
    from barnabas.model.errors import CorruptBatchError

    with opened(path) as view:
        try:
            for batch in batches(view, check=False):
                if batch.header.last_offset >= start:
                    yield batch
        except CorruptBatchError as error:
            raise CommandError(
                f"{path}: {error}; `barnabas log verify {path}` says where"
            ) from error


def _show(batch: "Batch", *, records: bool) -> None:
    header = batch.header
    say(
        f"  offsets {header.base_offset}..{header.last_offset}  at {batch.position}  "
        f"{header.size} bytes  {plural(header.record_count, 'record')}  "
        f"{_time(header.max_timestamp)}  {_codec(header)}  epoch {header.leader_epoch}"
        f"{_producer(header)}{_marks(header)}{'' if _is_sound(batch) else '  BAD CHECKSUM'}"
    )
    for record in _records(batch) if records else ():
        headers = "".join(f"  {name}={value!r}" for name, value in record.headers)
        say(
            f"    {record.offset}  {_time(record.timestamp)}  key {record.key!r}  "
            f"value {record.value!r}{headers}"
        )


def _as_json(path: Path, batch: "Batch", *, records: bool) -> dict[str, object]:
    header = batch.header
    fields: dict[str, object] = {
        "file": str(path),
        "position": batch.position,
        "size": header.size,
        "last_offset": header.last_offset,
        "codec": _codec(header),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc_is_valid": _is_sound(batch),
        **header._asdict(),
    }
    if records:
        fields["records"] = [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
            }
            for record in _records(batch)
        ]
    return fields


def _records(batch: "Batch") -> "Iterator[Record]":
    from barnabas.model.errors import CorruptBatchError
    from barnabas.protocol.records import records

    try:
        yield from records(batch.content, batch.header)
    except CorruptBatchError as error:
        raise CommandError(f"batch at byte {batch.position}: {error}") from error


def _is_sound(batch: "Batch") -> bool:
    from barnabas.protocol.records import checksum

    return checksum(batch.content) == batch.header.crc


def _text(content: bytes | None) -> str | None:
    # For display only, so bytes that are not text may be escaped.
    return None if content is None else content.decode(errors="backslashreplace")


def _codec(header: "BatchHeader") -> str:
    return CODECS[header.codec] if header.codec < len(CODECS) else f"codec {header.codec}"


def _producer(header: "BatchHeader") -> str:
    if header.producer_id < 0:
        return ""
    return f"  producer {header.producer_id}/{header.producer_epoch} from {header.base_sequence}"


def _marks(header: "BatchHeader") -> str:
    marks = (("transactional", header.is_transactional), ("control", header.is_control))
    return "".join(f"  {name}" for name, is_set in marks if is_set)


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "no time"
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
