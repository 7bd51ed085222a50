"""Tests the configuration of a session before it starts."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from barnabas.telemetry.jobs import packing, spark_session
from barnabas.telemetry.jobs.spark_session import SessionError, SessionSettings, configuration
from barnabas.telemetry.jobs.workers import Answer, sentences


def configured(settings: SessionSettings) -> dict[str, str]:
    return configuration(settings, {"spark.speculation": "false"}, 2, "/tmp/x")


@pytest.mark.parametrize(
    ("master", "shown"),
    [
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local", "local[1,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://head:7077", "spark://head:7077"),
        ("yarn", "yarn"),
    ],
)
def test_tasks_of_a_local_master_are_tried_again(master: str, shown: str) -> None:
    assert configured(SessionSettings(master=master))["spark.master"] == shown


def test_what_the_user_says_wins() -> None:
    settings = SessionSettings(conf={"spark.ui.enabled": "true", "spark.driver.memory": "9g"})

    found = configured(settings)

    assert found["spark.ui.enabled"] == "true"
    assert found["spark.driver.memory"] == "9g"
    assert found["spark.speculation"] == "false"


def test_local_workers_are_reached_by_sockets_that_do_not_wait_where_their_path_fits() -> None:
    settings = SessionSettings()
    found = configuration(settings, {}, 2, "/tmp/x")
    assert found[spark_session.UNIX_SOCKETS] == "true"
    assert spark_session.UNIX_SOCKETS not in configuration(
        settings, {}, 2, "/var/folders/" + "x" * 60
    )
    assert spark_session.UNIX_SOCKETS not in configuration(
        SessionSettings(master="yarn"), {}, 2, "/tmp"
    )


def test_a_submitted_session_keeps_what_its_cluster_says() -> None:
    ours = configured(SessionSettings(master=None))

    assert not {"spark.master", "spark.driver.memory", "spark.driver.extraJavaOptions"} & set(ours)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_391"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("what?", None),
    ],
)
def test_the_version_of_java_is_read(text: str, version: int | None) -> None:
    assert spark_session.java_version(text) == version


def test_without_java_there_is_one_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(spark_session, "java_program", lambda _: None)

    with pytest.raises(SessionError, match=r"Spark needs Java, which is not here; type: .+"):
        spark_session.check_java()


def test_an_old_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_391\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(SessionError, match=r"Java 17 or later and .* is Java 8; type: "):
        spark_session.check_java()


def test_the_package_runs_from_its_zip(tmp_path: Path) -> None:
    target = tmp_path / "barnabas.zip"
    count = packing.write(target)
    code = "import barnabas.telemetry.lake.lake_tables as t; print(t.__file__)"

    said = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.startswith(str(target))
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
    assert len(names) == count
    assert "pyspark_barnabas/__init__.py" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_requirements_are_what_workers_import() -> None:
    """All modules that the packages on the workers import from elsewhere are listed."""
    source = Path(packing.__file__).parents[2]
    files = [p for name in WORKER_PACKAGES for p in (source / name).rglob("*.py")]
    files += [source / "telemetry" / "jobs" / f"{name}.py" for name in ("silver", "gold", "bronze")]
    files.remove(source / BROKER_ONLY)
    imported = {name for file in files for name in imports(file)}
    elsewhere = imported - set(sys.stdlib_module_names) - {"barnabas", "pyspark", "py4j"}

    assert elsewhere - DRIVER_ONLY <= set(packing.REQUIREMENTS)
    assert not [file for file in files if "name_pattern" in file.read_text()]


WORKER_PACKAGES = ("spark", "wire", "protocol", "model")
DRIVER_ONLY = {"fastavro"}
"""Of the helpers for Avro, which the jobs do not use."""
BROKER_ONLY = "model/name_pattern.py"
"""It imports re2. No other module of the worker packages mentions it, so workers never load it."""


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_what_workers_lack_is_reported_once_for_each_machine() -> None:
    whole = Answer("a", "/usr/bin/python3", (), True)
    bare = Answer("b", "/usr/bin/python3", ("numpy", "pyarrow"), True)
    blind = Answer("c", "/usr/bin/python3", (), False)

    found = sentences([whole, bare, bare, blind, whole], "/lake")

    assert len(found) == 2
    assert "/usr/bin/python3 on worker b lacks numpy, pyarrow; type there: " in found[0]
    assert "'pyarrow>=19'" in found[0]
    assert "Worker c does not see /lake" in found[1]
