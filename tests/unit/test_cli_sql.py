"""Tests `barnabas sql`: errors before Spark starts, and the status of a run that has ended."""

import json
from pathlib import Path

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.cli.sql.sql_command import app
from barnabas.cli.sql.sql_run_command import judged, names_database, parsed
from barnabas.cli.sql.sql_status_command import document, is_held, only_state, words
from barnabas.spark.sql.run_status import Status, StreamStatus, write_status
from barnabas.spark.sql.statements import parse
from barnabas.telemetry.lake.lake_lock import held

STREAM = StreamStatus(name="revenue", into="topic revenue", state="running", batch=4, rows=10)


def said(*arguments: str) -> str:
    with pytest.raises(AdminError) as caught:
        app(list(arguments), standalone_mode=False)
    return str(caught.value)


def test_what_cannot_be_is_refused_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "shop.sql"
    assert f"There is no file {file}; pass a FILE" in said(str(file))
    file.write_text("\nCREATE STREAM s INTO TOPIC x")
    assert f"{file}, line 2: AS SELECT ... is missing; type: CREATE STREAM" in said(
        "run", str(file)
    )
    file.write_text("-- nothing")
    assert "has no statements" in said(str(file))
    assert "Pass a FILE of statements, or -e" in said("run")
    file.write_text("SELECT 1")
    assert "No broker answered at 127.0.0.1:1" in said(str(file), "--bootstrap", "127.0.0.1:1")


def test_a_status_needs_the_folder_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said("status") == "Pass --state with the folder of a run; here is none"
    (tmp_path / "shop.state").mkdir()
    assert only_state(tmp_path) == tmp_path / "shop.state"
    assert "type: barnabas sql run FILE" in said("status")


def test_a_run_that_was_killed_is_shown_as_such_without_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Status(
        file="shop.sql", bootstrap="127.0.0.1:1", started="s", updated="u", streams=(STREAM,)
    )
    write_status(tmp_path, run)
    app(["status", "--state", str(tmp_path), "--json"], standalone_mode=False)
    (shown,) = json.loads(capsys.readouterr().out)["streams"]
    assert (shown["state"], shown["batch"], shown["lag"]) == ("killed", 4, None)

    with held(str(tmp_path)):
        assert is_held(tmp_path)
        app(["status", "--state", str(tmp_path)], standalone_mode=False)
    assert "revenue running 4 10" in " ".join(capsys.readouterr().out.split())


def test_a_stream_is_one_line() -> None:
    assert words(STREAM, 3) == ["running", "batch 4", "10 rows (0/s)", "lag 3"]
    status = Status(file="f", bootstrap="b", started="s", updated="u", streams=(STREAM,))
    assert document(status, {"revenue": 3})["file"] == "f"


def test_the_database_of_topics_is_made_only_where_it_is_named() -> None:
    text = "SELECT * FROM barnabas.a; SELECT 1; CREATE STREAM s AS SELECT * FROM barnabas.b"
    assert [names_database(each) for each in parse(text)] == [True, False, True]
    assert not names_database(parse("CREATE TABLE t USING barnabas OPTIONS (topic 'x')")[0])


def test_a_broker_that_is_down_is_waited_for_and_a_mistake_is_not() -> None:
    assert judged("barnabas.spark.query_errors.FetchError: no broker")[1] is None
    assert judged("ValueError: no")[1] == 0
    assert judged("Python worker exited unexpectedly (crashed)")[1] == 5


def test_many_topics_in_one_source_need_a_dead_letter_topic() -> None:
    with pytest.raises(AdminError, match=r"shop\.sql, line 1: .*deadLetterTopic"):
        parsed("shop.sql", "CREATE SOURCE s (a INT) OPTIONS (subscribe 'a,b')")
