"""Tests which queries are allowed, and the errors for the others."""

import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from barnabas.telemetry.lake.lake_reading import Lake, LakeError
from barnabas.telemetry.lake.querying import ask
from tests.support.pipelines.lake import h200, write_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lake"), h200(), samples_per_window=2)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT * FROM finding", "did you mean findings?"),
        ("SELECT * FROM bronze", "Table bronze is not in"),
        ("SELECT * FROM nothing_like_it", "there are alerts, findings, gold_10s"),
        ("SELECT watts FROM findings", "findings has window_start, window_end, gpu_id"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT 1; SELECT 2", "one SQL statement, not 2"),
        ("", "one SQL statement, not 0"),
    ],
)
def test_errors_help(lake: Path, sql: str, sentence: str) -> None:
    with pytest.raises(LakeError, match=re.escape(sentence)):
        ask(Lake(lake), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "COPY findings TO '{}/stolen.csv'",
        "COPY (SELECT 1) TO '{}/findings/batch-0000000000.parquet'",
        "CREATE TABLE mine AS SELECT 1",
        "DROP VIEW findings",
        "ATTACH '{}/other.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT * FROM connection",
        "EXPLAIN ANALYZE COPY findings TO '{}/stolen.csv'",
    ],
)
def test_a_query_only_reads_and_only_the_lake(lake: Path, sql: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
    with pytest.raises(LakeError):
        ask(Lake(lake), sql.replace("{}", str(lake)))
    assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before


@pytest.mark.parametrize(
    "sql",
    [
        "FROM alerts",
        "DESCRIBE findings",
        "SUMMARIZE gold_1m",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM findings",
        "WITH t AS (SELECT 1 AS a) SELECT * FROM t ORDER BY a",
        "VALUES (1), (2)",
    ],
)
def test_any_readable_file_is_accepted(lake: Path, sql: str) -> None:
    assert ask(Lake(lake), sql).columns


def test_a_limit_of_rows_is_shown(lake: Path) -> None:
    assert ask(Lake(lake), "FROM range(5)", 5).is_cut is False
    cut = ask(Lake(lake), "FROM range(5)", 4)
    assert (len(cut.rows), cut.is_cut) == (4, True)
