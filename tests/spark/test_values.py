"""Tests values to columns: what decodes, what does not and why, and the dead letters of it."""

import io
import json
import struct
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

import fastavro
from pyspark.sql import functions as F  # noqa: N812
from pyspark.testing import assertDataFrameEqual

from barnabas.spark import SchemaRegistry, avro_values, json_values, to_dlq
from barnabas.spark.helpers.avro import AvroError
from barnabas.spark.helpers.columns import ColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
SCHEMA = "gpu STRING NOT NULL, watts DOUBLE, place STRUCT<host: STRING NOT NULL, slot: INT>"
BAD = {
    None: "no-value",
    b"": "bad-json",
    b"{": "bad-json",
    b'{"gpu": "a"} and more': "bad-json",
    b'{"gpu": "a"}{"gpu": "b"}': "bad-json",
    b'{"gpu": "a"},{"gpu": "b"}': "bad-json",
    b'{"gpu": "a"}],"z":[{"gpu": "b"}': "bad-json",
    b'{"gpu": "a"},{}],"z":[{"gpu": "b"}': "bad-json",
    b'{"gpu": "a"}]}': "bad-json",
    b'{"gpu": "a"},{"__last_": true}]}': "bad-json",
    b"{'gpu': 'a'}": "bad-json",
    b'{"gpu": "\xff"}': "bad-utf8",
    b"null": "not-an-object",
    b"17": "not-an-object",
    b'[{"gpu": "a"}]': "not-an-object",
    b'{"gpu": "a", "watts": "hot"}': "wrong-type",
    b'{"gpu": "a", "place": {"host": "h", "slot": 1.5}}': "wrong-type",
    b"{}": "missing-field",
    b'{"gpu": null}': "missing-field",
    b'{"gpu": "a", "place": {"slot": 1}}': "missing-field",
}


def records(spark: "SparkSession", values: Sequence[bytes | None]) -> "DataFrame":
    rows = [(b"k", value, "samples", 3, n, [("h", b"1")]) for n, value in enumerate(values)]
    return spark.createDataFrame(rows, RECORDS)


def test_good_values_become_columns(spark: "SparkSession") -> None:
    values = [
        b'{"gpu": "a", "watts": 1.5, "place": {"host": "h", "slot": 2}, "unknown": 1}',
        b' {"gpu": "b"} ',
    ]
    decoded = json_values(records(spark, values), SCHEMA, keep=["offset"])
    expected = spark.createDataFrame(
        [(0, "a", 1.5, ("h", 2)), (1, "b", None, None)],
        "offset BIGINT, gpu STRING, watts DOUBLE, place STRUCT<host: STRING, slot: INT>",
    )
    assertDataFrameEqual(decoded.good, expected)
    assert decoded.bad.count() == 0


def test_bad_values_keep_all_they_had_and_say_why(spark: "SparkSession") -> None:
    frame = records(spark, list(BAD))
    decoded = json_values(frame, SCHEMA)
    found = {None if row.value is None else bytes(row.value): row for row in decoded.bad.collect()}
    assert {value: row.reason for value, row in found.items()} == BAD
    assert all(row.detail for row in found.values())
    assert "watts is hot, not double" in found[b'{"gpu": "a", "watts": "hot"}'].detail
    assert "place.host" in found[b'{"gpu": "a", "place": {"slot": 1}}'].detail
    assertDataFrameEqual(decoded.bad.drop("reason", "detail"), frame)
    assert decoded.good.count() == 0


def test_a_value_is_parsed_once(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    json_values(records(spark, [b"{}"]), SCHEMA, keep=["offset"]).good.explain()
    plan = capsys.readouterr().out
    assert plan.count("from_json(") == 1


def test_fields_can_go_into_one_column(spark: "SparkSession") -> None:
    frame = records(spark, [b'{"topic": "t"}'])
    row = json_values(frame, "topic STRING", into="body").good.first()
    assert row is not None
    assert (row.topic, row.body.topic) == ("samples", "t")


def test_what_cannot_be_is_refused_with_the_remedy(spark: "SparkSession") -> None:
    frame = records(spark, [])
    with pytest.raises(
        ColumnError, match=r"topic would be there twice; .* keep=\[...\], or .*into="
    ):
        json_values(frame, "topic STRING")
    with pytest.raises(ColumnError, match="no column body; the columns are key, value"):
        json_values(frame, SCHEMA, column="body")
    with pytest.raises(
        ColumnError, match="offset is bigint; only a string or binary column can be decoded"
    ):
        json_values(frame, SCHEMA, column="offset")
    with pytest.raises(ColumnError, match="reason would be there twice"):
        json_values(frame.withColumn("reason", F.lit(1)), SCHEMA)


def test_dead_letters_keep_bytes_and_headers(spark: "SparkSession") -> None:
    frame = records(spark, [b"{"]).withColumn(
        "headers",
        F.expr(
            "concat(headers, array(struct('dlq.reason' AS key, CAST('old' AS BINARY) AS value)))"
        ),
    )
    row = to_dlq(json_values(frame, SCHEMA).bad, "samples-dlq").first()
    assert row is not None
    assert (bytes(row.key), bytes(row.value), row.topic) == (b"k", b"{", "samples-dlq")
    assert "partition" not in row
    headers = [(each.key, bytes(each.value).decode()) for each in row.headers]
    assert headers[:5] == [
        ("h", "1"),
        ("dlq.topic", "samples"),
        ("dlq.partition", "3"),
        ("dlq.offset", "0"),
        ("dlq.reason", "bad-json"),
    ]
    assert [name for name, _ in headers[5:]] == ["dlq.detail", "dlq.time"]
    assert datetime.fromisoformat(headers[-1][1]).tzinfo == UTC


def test_dead_letters_of_records_without_headers(spark: "SparkSession") -> None:
    bare = records(spark, [b"{"]).withColumn(
        "headers", F.lit(None).cast("array<struct<key:string,value:binary>>")
    )
    for frame in (bare, bare.drop("headers", "key")):
        row = to_dlq(json_values(frame, SCHEMA).bad).first()
        assert row is not None
        assert next(each.key for each in row.headers) == "dlq.topic"
        assert "topic" not in row


def test_both_branches_stream(spark: "SparkSession", tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    records(spark, [b'{"gpu": "a"}', b"{"]).write.parquet(source)
    stream = spark.readStream.schema(RECORDS).parquet(source)
    decoded = json_values(stream, SCHEMA)
    for name, frame in (("good", decoded.good), ("dead", to_dlq(decoded.bad))):
        query = (
            frame.writeStream.format("memory")
            .queryName(name)
            .trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / name))
            .start()
        )
        query.awaitTermination()
        assert spark.table(name).count() == 1


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Sample",
        "fields": [
            {"name": "gpu", "type": "string"},
            {"name": "watts", "type": ["null", "double"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"]}},
            {"name": "before", "type": ["null", "State"]},
            {"name": "tags", "type": {"type": "map", "values": "long"}},
            {"name": "loads", "type": {"type": "array", "items": ["int", "long"]}},
        ],
    }
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
SAMPLE: dict[str, Any] = {
    "gpu": "a",
    "watts": 1.5,
    "at": AT,
    "day": date(2026, 1, 2),
    "clock": 77,
    "price": Decimal("12.34"),
    "state": "ON",
    "before": "OFF",
    "tags": {"x": 1},
    "loads": [1, 2**40],
}
OLDER = json.dumps(
    {
        "type": "record",
        "name": "Sample",
        "fields": [{"name": "gpu", "type": "string"}, {"name": "rank", "type": "int"}],
    }
)
NEWER = json.dumps(
    {
        "type": "record",
        "name": "Sample",
        "fields": [
            {"name": "gpu", "type": "string"},
            {"name": "host", "type": ["null", "string"], "default": None},
        ],
    }
)


def avro_bytes(schema: str, value: dict[str, Any]) -> bytes:
    parsed = json.loads(schema)
    for field in parsed["fields"]:
        if isinstance(field["type"], dict) and field["type"].get("logicalType") == "time-millis":
            field["type"] = "int"
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(parsed), value)
    return out.getvalue()


def framed(number: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + body


def test_avro_of_every_type_becomes_columns(spark: "SparkSession") -> None:
    whole = avro_bytes(AVRO, SAMPLE)
    frame = records(spark, [whole, whole[:-2], whole + b"!", None])
    decoded = avro_values(frame, AVRO, keep=["offset"])
    (row,) = decoded.good.selectExpr("*", "unix_millis(at) AS at_ms").collect()
    found = row.asDict(recursive=True)
    assert found.pop("at_ms") == AT.timestamp() * 1000
    del found["at"]
    assert found == {"offset": 0} | {name: SAMPLE[name] for name in SAMPLE if name != "at"}
    bad = decoded.bad.orderBy("offset").collect()
    assert [row.reason for row in bad] == ["bad-avro", "bad-avro", "no-value"]
    assert "1 bytes are left over" in bad[1].detail


def test_framed_avro_is_read_as_another_schema_says(spark: "SparkSession") -> None:
    values = [
        framed(7, avro_bytes(OLDER, {"gpu": "a", "rank": 1})),
        framed(8, avro_bytes(NEWER, {"gpu": "b", "host": "h"})),
        framed(9, b""),
        b"\x01plain",
    ]
    decoded = avro_values(
        records(spark, values), NEWER, schemas={7: OLDER, 8: NEWER}, keep=["offset"]
    )
    expected = spark.createDataFrame(
        [(0, "a", None), (1, "b", "h")], "offset BIGINT, gpu STRING, host STRING"
    )
    assertDataFrameEqual(decoded.good, expected)
    reasons = [row.reason for row in decoded.bad.orderBy("offset").collect()]
    assert reasons == ["unknown-schema", "bad-frame"]


class _Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/schemas/ids/7" and self.headers["Authorization"] == "Bearer x"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": OLDER} if known else {}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_schemas_come_from_a_registry(spark: "SparkSession", registry: str) -> None:
    schemas = SchemaRegistry(registry, headers={"Authorization": "Bearer x"})
    values: list[bytes | None] = [
        framed(7, avro_bytes(OLDER, {"gpu": "a", "rank": 1})),
        framed(8, b""),
    ]
    decoded = avro_values(records(spark, values), NEWER, schemas=schemas)
    assert [row.gpu for row in decoded.good.collect()] == ["a"]
    assert [row.reason for row in decoded.bad.collect()] == ["unknown-schema"]


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("nonsense", "not JSON"),
        ('"string"', "not of a record"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}',
            r"R\.a is a union of 2 types",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}',
            r"R\.next is of type R, which contains itself",
        ),
    ],
)
def test_a_schema_that_cannot_be_columns_is_refused(
    spark: "SparkSession", schema: str, complaint: str
) -> None:
    with pytest.raises(AvroError, match=complaint):
        avro_values(records(spark, []), schema)
