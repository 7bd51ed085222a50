"""Tests splitting and parsing a file of statements without Spark; errors name the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.sql.statements import (
    CreateFunction,
    CreateSource,
    CreateStream,
    Into,
    SparkStatement,
    StatementError,
    parse,
)

FILE = """-- what comes; in JSON
CREATE SOURCE orders (
  id BIGINT NOT NULL, price DECIMAL(10, 2) /* ; */
) FROM TOPIC 'shop.orders' OPTIONS (startingOffsets 'latest', kafka.fetch.min.bytes = 1);

create function net from 'shop_functions:net_price' returns DECIMAL(10, 2);
CREATE STREAM revenue INTO TOPIC `revenue-1` OPTIONS (key 'id') AS
SELECT id, sum(price) FROM orders -- it's all; really
GROUP BY id;
CREATE STREAM kept INTO TABLE kept AS SELECT ';' AS sign FROM orders;
CREATE STREAM copies AS SELECT * FROM orders;
SHOW TABLES"""


def test_statements_are_read_with_their_lines() -> None:
    source, function, revenue, kept, copies, other = parse(FILE)

    assert source == CreateSource(
        line=2,
        name="orders",
        columns="id BIGINT NOT NULL, price DECIMAL(10, 2)",
        format="barnabas",
        options={
            "subscribe": "shop.orders",
            "startingOffsets": "latest",
            "kafka.fetch.min.bytes": "1",
        },
    )
    assert function == CreateFunction(
        line=6,
        name="net",
        module="shop_functions",
        function="net_price",
        returns="DECIMAL(10, 2)",
    )
    assert isinstance(revenue, CreateStream)
    assert (revenue.into, revenue.target, revenue.options) == (
        Into.TOPIC,
        "revenue-1",
        {"key": "id"},
    )
    assert (revenue.line, revenue.query_line) == (7, 8)
    assert revenue.query.startswith("SELECT id, sum(price)")
    assert revenue.query.endswith("GROUP BY id")
    assert isinstance(kept, CreateStream)
    assert (kept.into, kept.target, kept.format) == (Into.TABLE, "kept", "parquet")
    assert kept.query == "SELECT ';' AS sign FROM orders"
    assert isinstance(copies, CreateStream)
    assert (copies.into, copies.target) == (Into.TOPIC, "copies")
    assert other == SparkStatement(12, "SHOW TABLES")


def test_a_function_of_java_is_left_to_spark() -> None:
    text = "CREATE FUNCTION f AS 'com.example.F'"
    assert parse(text) == [SparkStatement(1, text)]


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("SELECT 1;\nSELECT 'open", 2, "the string that begins here is not closed"),
        ("/* open", 1, "the comment that begins here is not closed"),
        ("CREATE SOURCE", 1, "the name of the source is missing before the end; type: CREATE"),
        ("CREATE SOURCE `my-orders` FROM TOPIC x", 1, "such as my_orders"),
        ("CREATE SOURCE s (a INT", 1, "a closing parenthesis is missing"),
        ("CREATE SOURCE s ()", 1, "there are no columns"),
        ("CREATE SOURCE s (a INT)", 1, "does not say what to read; type: CREATE SOURCE"),
        ("CREATE SOURCE s FROM TOPIC x\nOPTIONS (a)", 2, "an option is a name and a value"),
        ("CREATE SOURCE s FROM TOPIC x\nOPTION (a 'b')", 2, "OPTION is not expected; type:"),
        ("CREATE SOURCE s FROM TOPIC 'a b'", 1, "cannot be the name of a topic"),
        ("CREATE STREAM s INTO TOPIC x", 1, "AS SELECT ... is missing; type: CREATE STREAM"),
        ("CREATE STREAM s INTO FILE x AS SELECT 1", 1, "AS SELECT ... is missing"),
        (
            "CREATE STREAM s AS SELECT 1;\nCREATE STREAM S AS SELECT 2",
            2,
            "S is already defined on line 1",
        ),
        (
            "CREATE STREAM a INTO TABLE t AS SELECT 1;\nCREATE STREAM b INTO TABLE t AS SELECT 2",
            2,
            "table t is already defined on line 1",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_line_and_remedy(
    text: str, line: int, advice: str
) -> None:
    with pytest.raises(StatementError) as caught:
        parse(text)
    assert caught.value.line == line
    assert advice in caught.value.sentence


@given(
    st.lists(
        st.sampled_from(
            ["SELECT 1", "SELECT ';'", "SELECT `;`", "SELECT 1 /* ; */ + 1", 'SELECT ";"']
        )
    ),
    st.sampled_from([";", " ;\n", ";\n-- a ; comment\n", ";;"]),
)
def test_statements_come_out_as_they_were_written(texts: list[str], between: str) -> None:
    found = parse(between.join(texts))
    assert [each.text for each in found if isinstance(each, SparkStatement)] == texts
