"""Tests record batches to Arrow, compared with the records that barnabas.protocol reads."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import TopicPartition
from barnabas.model.ports import Buffer
from barnabas.protocol.compression import Codec
from barnabas.protocol.markers import visible
from barnabas.protocol.records import LOG_APPEND_TIME, TRANSACTIONAL, Record, build, stamp
from barnabas.spark import schema
from barnabas.spark.source import record_decoding as decoding
from barnabas.spark.source.record_decoding import Wanted, checked_batches, decode, slabs
from barnabas.spark.source.split_reading import timed
from tests.support.talk.batches import make_marker

PLACE = TopicPartition("orders", 3)
Content: TypeAlias = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(
    buffer: Buffer,
    *,
    start: int = 0,
    end: int = 2**60,
    headers: bool = False,
    aborted: Sequence[tuple[int, int]] = (),
) -> list[tuple[Any, ...]]:
    """Return the rows of a Fetch response as tuples."""
    view = memoryview(bytes(buffer))
    found: list[tuple[Any, ...]] = []
    for slab in slabs(view, visible(checked_batches(view), aborted)):
        table = decode(slab, Wanted(PLACE, start, end, headers))
        if table is not None:
            assert table.schema == schema.arrow_schema(include_headers=headers)
            table.validate(full=True)
            found += [tuple(row.values()) for row in table.to_pylist()]
    return found


def row(record: Record, *, headers: bool = False, kind: int = 0) -> tuple[Any, ...]:
    shown = [{"key": name, "value": value} for name, value in record.headers] or None
    time = EPOCH + timedelta(milliseconds=record.timestamp)
    columns = (record.key, record.value, *PLACE, record.offset, time, kind)
    return (*columns, shown) if headers else columns


def some_records(count: int, first: int = 0, size: int = 5) -> list[Record]:
    return [Record(first + n, 1_700_000_000_000 + n, b"k%d" % n, b"v" * size) for n in range(count)]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [0, 5, 100, 9_000])
def test_every_codec_and_size_of_length(codec: Codec, size: int) -> None:
    content = some_records(300, size=size)
    assert rows(build(content, codec=codec)) == [row(each) for each in content]


IN_A_FRESH_WORKER = """
import sys
from barnabas.model.ids import TopicPartition
from barnabas.protocol.records import Record, build
from barnabas.spark.source.record_decoding import Wanted, checked_batches, decode, slabs
view = memoryview(bytes(build([Record(0, 0, None, b"v"), Record(1, 0, b"k", b"w")])))
wanted = Wanted(TopicPartition("t", 0), 0, 2)
[table] = [decode(each, wanted) for each in slabs(view, checked_batches(view))]
assert table.num_rows == 2
assert "pandas" not in sys.modules
"""


def test_a_worker_need_not_load_pandas_to_decode() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_WORKER], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


texts = st.text(max_size=5)
some_bytes = st.none() | st.binary(max_size=200)
contents = st.lists(
    st.tuples(
        st.integers(1, 70),
        st.integers(-(2**30), 2**40),
        some_bytes,
        some_bytes,
        st.lists(st.tuples(texts, some_bytes), max_size=2),
    ),
    min_size=1,
    max_size=200,
)


@given(st.lists(st.tuples(contents, st.sampled_from(Codec)), min_size=1, max_size=4))
def test_rows_are_what_a_walk_record_by_record_finds(
    batches: list[tuple[list[Content], Codec]],
) -> None:
    buffer, offset = bytearray(), 0
    expected: list[Record] = []
    for content, codec in batches:
        records = []
        for gap, time, key, value, headers in content:
            offset += gap
            records.append(Record(offset, time, key, value, tuple(headers)))
        buffer += build(records, codec=codec)
        expected += records
    assert rows(buffer, headers=True) == [row(each, headers=True) for each in expected]
    assert rows(buffer) == [row(each) for each in expected]


def test_records_of_one_length_and_of_many_in_one_batch() -> None:
    content = some_records(9_000, size=40)
    content[5_000] = content[5_000]._replace(value=b"x" * 70_000)
    content[8_000] = content[8_000]._replace(value=None)
    assert rows(build(content)) == [row(each) for each in content]


def test_a_read_may_start_and_end_inside_batches() -> None:
    buffer = build(some_records(10)) + build(some_records(10, 10)) + build(some_records(10, 20))
    found = [each[4] for each in rows(buffer, start=7, end=23)]
    assert found == list(range(7, 23))
    assert rows(buffer, start=30) == []


def emptied(offset: int, last: int, codec: Codec = Codec.NONE) -> bytearray:
    """Return what compaction leaves of a batch without records: its header."""
    return build([], base_offset=offset, last_offset=last, base_timestamp=0, attributes=int(codec))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Codec)), min_size=1, max_size=8))
def test_batches_that_compaction_emptied_have_no_rows(parts: list[tuple[int, Codec]]) -> None:
    buffer, expected = bytearray(), []
    for number, (count, codec) in enumerate(parts):
        content = some_records(count, number * 10)
        expected += [row(each) for each in content]
        whole = build(content, codec=codec) if content else None
        buffer += whole or emptied(number * 10, number * 10 + 9, codec)
    assert rows(buffer) == expected


def test_an_empty_batch_may_be_compressed() -> None:
    [following] = some_records(1, 5)
    for codec in Codec:
        empty = build([], codec=codec, base_offset=0, last_offset=4, base_timestamp=0)
        assert rows(empty + build([following])) == [row(following)]


def test_large_answers_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "ROWS_MAX", 100)
    for codec in (Codec.NONE, Codec.ZSTD):
        buffer = b"".join(bytes(build(some_records(60, n * 60), codec=codec)) for n in range(5))
        view = memoryview(buffer)
        found = [
            decode(slab, Wanted(PLACE, 0, 1000)) for slab in slabs(view, checked_batches(view))
        ]
        sizes = [each.num_rows for each in found if each is not None]
        assert sizes == [120, 120, 60]


def test_a_batch_larger_than_a_slab_is_one_slab() -> None:
    content = some_records(decoding.ROWS_MAX + 10, size=1)
    assert len(rows(build(content))) == decoding.ROWS_MAX + 10


def test_the_brokers_time_holds_for_the_whole_batch() -> None:
    content = some_records(3)
    found = rows(build(content, attributes=LOG_APPEND_TIME) + build(some_records(1, 3)))
    latest = content[-1].timestamp
    assert found[:3] == [row(each._replace(timestamp=latest), kind=1) for each in content]
    assert found[3][6] == 0


def transactional(producer: int, first: int, count: int = 2) -> bytearray:
    return build(some_records(count, first), attributes=TRANSACTIONAL, producer_id=producer)


def marker(producer: int, offset: int, *, commit: bool) -> bytearray:
    batch = bytearray(make_marker(producer, commit=commit))
    stamp(batch, 0, offset, 0)
    return batch


def test_aborted_transactions_are_left_out_until_their_marker() -> None:
    buffer = b"".join(
        bytes(part)
        for part in (
            transactional(7, 0),
            transactional(8, 2),
            marker(7, 4, commit=False),
            transactional(7, 5),
            marker(8, 7, commit=True),
            marker(7, 8, commit=True),
            build(some_records(1, 9)),
        )
    )
    committed = [each[4] for each in rows(buffer, aborted=[(7, 0)])]
    assert committed == [2, 3, 5, 6, 9]
    uncommitted = [each[4] for each in rows(buffer)]
    assert uncommitted == [0, 1, 2, 3, 5, 6, 9]


def test_headers_are_null_where_there_are_none() -> None:
    plain, with_some = some_records(2)
    with_some = with_some._replace(headers=(("a", b"1"), ("b", None), ("", b"")))
    assert [each[7] for each in rows(build([plain, with_some]), headers=True)] == [
        None,
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "", "value": b""}],
    ]


def test_a_cut_batch_at_the_end_of_an_answer_is_left_for_the_next() -> None:
    whole = bytes(build(some_records(3)))
    assert len(rows(whole + bytes(build(some_records(3, 3)))[:-1])) == 3


def test_damage_is_found() -> None:
    batch = bytearray(build(some_records(3)))
    batch[-3] ^= 1
    with pytest.raises(CorruptBatchError, match="checksum"):
        rows(batch)


def test_lengths_that_lie_are_found_even_without_checksums() -> None:
    for position in (61, 65, 68):
        batch = bytearray(build(some_records(3)))
        batch[position] = 0x7E
        view = memoryview(bytes(batch))
        with pytest.raises(CorruptBatchError):
            _ = [
                decode(slab, Wanted(PLACE, 0, 100))
                for slab in slabs(view, checked_batches(view, check_crcs=False))
            ]


def test_old_message_formats_are_refused_with_advice() -> None:
    with pytest.raises(CorruptBatchError, match="message format 1"):
        checked_batches(memoryview(bytes(16) + b"\x01" + bytes(20)))


def test_the_time_for_some_rows_is_in_the_first_of_them() -> None:
    record = pa.record_batch({"key": pa.array([b"a", b"b", b"c"], pa.binary())})
    found = [batch.column(schema.FETCH_TIME).to_pylist() for batch in timed([record, record])]
    assert [times[1:] for times in found] == [[0, 0]] * 2
    assert found[0][0] > 0
    columns = schema.spark_schema(include_headers=False, include_fetch_time=True)
    assert columns.fieldNames()[-1] == schema.FETCH_TIME


@pytest.mark.parametrize("include_headers", [True, False])
def test_columns_are_those_that_spark_expects(include_headers: bool) -> None:
    wanted = to_arrow_schema(schema.spark_schema(include_headers=include_headers), timezone="UTC")
    assert wanted.equals(schema.arrow_schema(include_headers=include_headers))
