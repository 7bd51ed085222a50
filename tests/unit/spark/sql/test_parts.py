"""Tests names of tables, dead letters, functions, and the translation of Spark's errors."""

from pathlib import Path

import pytest

from barnabas.spark.sql.functions import load, returned_type
from barnabas.spark.sql.output_topics import output_topics
from barnabas.spark.sql.sql_error_lines import refusal
from barnabas.spark.sql.sql_tables import quoted, quoted_name
from barnabas.spark.sql.statements import CreateFunction, StatementError, parse
from barnabas.spark.sql.topic_tables import named_tables

FUNCTION = CreateFunction(
    line=4, name="net", module="sql_test_module", function="net", returns=None
)


def test_a_topic_whose_name_is_a_name_of_a_table_comes_first() -> None:
    found = named_tables(["shop.orders", "shop_orders", "Payments", "a-b"])
    assert found.tables == {"a_b": "a-b", "payments": "Payments", "shop_orders": "shop_orders"}
    assert found.without_table == ("shop.orders",)


def test_streams_and_dead_letters_need_topics() -> None:
    statements = parse(
        "CREATE SOURCE a (x INT) FROM TOPIC a; CREATE SOURCE raw FROM TOPIC b;"
        "CREATE SOURCE c (x INT) FROM TOPIC c OPTIONS (deadLetterTopic 'none');"
        "CREATE STREAM out AS SELECT 1; CREATE STREAM t INTO TABLE t AS SELECT 1"
    )
    assert output_topics(statements) == ["a-dlq", "out"]


def test_a_source_of_many_topics_says_where_dead_letters_go() -> None:
    statements = parse("\nCREATE SOURCE a (x INT) OPTIONS (subscribe 'a,b')")
    with pytest.raises(StatementError, match=r"line 2: .* OPTIONS \(deadLetterTopic 'NAME'\)"):
        output_topics(statements)


def test_text_and_names_are_quoted() -> None:
    assert quoted("it's a \\ b") == "'it\\'s a \\\\ b'"
    assert quoted_name("a`b") == "`a``b`"


def test_a_function_comes_from_a_module_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "sql_test_module.py").write_text(
        "def net(amount: float) -> float:\n    return amount / 1.19\n\n"
        "def untyped(amount):\n    return amount\n"
    )
    found = load(FUNCTION, tmp_path)
    assert found(119.0) == pytest.approx(100.0)
    assert returned_type(FUNCTION, found) == "DOUBLE"

    untyped = CreateFunction(
        line=4, name="u", module="sql_test_module", function="untyped", returns=None
    )
    with pytest.raises(
        StatementError, match="line 4: untyped does not declare its return type; type:"
    ):
        returned_type(untyped, load(untyped, tmp_path))
    missing = CreateFunction(line=4, name="m", module="sql_test_module", function="m", returns=None)
    with pytest.raises(StatementError, match="has no function m; it has net, untyped"):
        load(missing, tmp_path)
    nowhere = CreateFunction(line=4, name="m", module="sql_no_module", function="m", returns=None)
    with pytest.raises(StatementError, match=r"put sql_no_module\.py into"):
        load(nowhere, tmp_path)


def test_a_refusal_of_spark_becomes_a_sentence_with_a_line() -> None:
    text = "\n[PARSE_SYNTAX_ERROR] Syntax error at 'orders'. SQLSTATE: 42601 (line 4, pos 18)\n"
    assert str(refusal(text, 2)) == "line 4: [PARSE_SYNTAX_ERROR] Syntax error at 'orders'."
    python = "[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback\nbarnabas.spark.OptionError: Do x\n"
    assert str(refusal(python, 2)) == "line 2: Do x"
    endless = "Queries with streaming sources must be executed with writeStream.start();"
    assert "type: CREATE STREAM name AS SELECT" in str(refusal(endless, 2))
