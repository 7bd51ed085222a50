"""Tests that the protocol's codec reads the records that numpy and Arrow assemble."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record, parse_header, records, verify
from barnabas.spark.sink.record_encoding import (
    Chunk,
    Producer,
    RowError,
    Rows,
    encode,
    frame,
    header_column,
)
from tests.support.examples import examples

HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NOW_MS = 1_700_000_000_000
PRODUCER = Producer(7, 3, transactional=True)

some_bytes = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=70))
header = st.fixed_dictionaries({"key": st.text(max_size=5), "value": some_bytes})
row = st.tuples(
    some_bytes,
    some_bytes,
    st.one_of(st.none(), st.lists(header, max_size=3)),
    st.integers(0, 1 << 42),
)


def decoded(rows: Rows, chunks: list[Chunk], codec: Codec = Codec.NONE) -> list[list[Record]]:
    found = []
    for encoded in encode(rows, chunks, NOW_MS):
        batch = frame(encoded, codec, None, PRODUCER, 5)
        head = parse_header(batch)
        verify(batch, head)
        assert (head.producer_id, head.producer_epoch, head.base_sequence) == (7, 3, 5)
        assert head.is_transactional
        assert head.last_offset_delta == head.record_count - 1
        found.append(list(records(batch, head)))
        assert head.max_timestamp == max(each.timestamp for each in found[-1])
    return found


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(row, min_size=1, max_size=200), st.data())
def test_every_row_comes_back(
    content: list[tuple[bytes | None, bytes | None, list[dict[str, object]] | None, int]],
    data: st.DataObject,
) -> None:
    cuts = data.draw(st.sets(st.integers(0, len(content)), max_size=4)) | {0, len(content)}
    chunks = [Chunk("t", 0, *bounds) for bounds in pairwise(sorted(cuts))]
    skipped = data.draw(st.integers(0, len(content) - 1))
    keys, values, headers, times = zip(*content[:skipped], *content, strict=True)
    columns = [
        pa.array(keys, pa.binary()).slice(skipped),
        pa.array(values, pa.binary()).slice(skipped),
        pa.array(headers, HEADER_TYPE).slice(skipped),
    ]
    rows = Rows(columns[1], columns[0], header_column(columns[2]), np.array(times[skipped:]))
    found = decoded(rows, chunks)
    expected = [
        (key, value, tuple((each["key"], each["value"]) for each in heads or ()), time)
        for key, value, heads, time in content
    ]
    flat = [each for batch in found for each in batch]
    assert [(each.key, each.value, each.headers, each.timestamp) for each in flat] == expected
    assert [[each.offset for each in batch] for batch in found] == [
        list(range(chunk.stop - chunk.start)) for chunk in chunks
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_large_batches_of_values_alone_in_every_codec(codec: Codec) -> None:
    values = [str(number).encode() * 20 for number in range(20_000)]
    rows = Rows(pa.array(values), None, None, None)
    (found,) = decoded(rows, [Chunk("t", 0, 0, len(values))], codec)
    assert [each.value for each in found] == values
    assert {(each.key, each.timestamp) for each in found} == {(None, NOW_MS)}


def test_lz4_blocks_stand_alone_since_java_reads_no_others() -> None:
    rows = Rows(pa.array([bytes(100)] * 5000), None, None, None)
    (encoded,) = encode(rows, [Chunk("t", 0, 0, 5000)], NOW_MS)
    batch = frame(encoded, Codec.LZ4, None, PRODUCER, 0)
    flags = batch[61 + 4]
    assert flags & 0x20


def test_a_value_of_megabytes() -> None:
    value = bytes(5 << 20)
    rows = Rows(pa.array([value, b""]), pa.array([b"k", None]), None, None)
    ((large, empty),) = decoded(rows, [Chunk("t", 0, 0, 2)])
    assert (large.key, large.value, empty.key, empty.value) == (b"k", value, None, b"")


def test_a_header_without_key_is_refused() -> None:
    with pytest.raises(RowError, match="header without a key"):
        header_column(pa.array([[{"key": None, "value": b"v"}]], HEADER_TYPE))
