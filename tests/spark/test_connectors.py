"""Tests docs/spark-connectors.md: every recipe runs twice, and each row is there once."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from confluent_kafka import Producer

from barnabas.testing.waiting import eventually
from tests.support.loads.load import create_topic
from tests.support.loads.topic_reading import committed_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.testing.broker import Broker

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "spark-connectors.md"
DRIVER = "org.postgresql:postgresql:42.7.7"
SESSION = 'SparkSession.builder.master("local[2]").getOrCreate()'
ORDERS = [
    b'{"id": 1, "item": "pen", "amount": 2.5}',
    b'{"id": 2, "item": "ink"}',
    b'{"id": "two", "item": "ink"}',
    b"junk",
]
NOTED_BUT_NOT_SENT = """
INSERT INTO outbox_windows
SELECT max(number) + 1, max(next), pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM outbox_windows
"""
PATIENCE_S = 60


def section(title: str, kind: str) -> list[str]:
    """Return the code of one kind before the first section, and of one section."""
    parts = PAGE.read_text().split("\n## ")
    chosen = [parts[0], *(part for part in parts[1:] if part.startswith(title))]
    return re.findall(rf"```{kind}\n(.*?)```", "\n".join(chosen), re.DOTALL)


def recipes(title: str, bootstrap: str, folder: Path) -> list[str]:
    found = []
    for code in section(title, "python"):
        text = code.replace("127.0.0.1:9092", bootstrap)
        for name in ("lake", "checkpoints", "incoming"):
            text = re.sub(rf'(f?"){name}\b', rf"\g<1>{folder}/{name}", text)
        found.append(text)
    return found


def values(broker: "Broker", topic: str) -> list[bytes]:
    records = committed_records(broker.bootstrap, topic)
    return sorted(each.value or b"" for each in records)


def reasons(broker: "Broker", topic: str) -> list[str]:
    letters = committed_records(broker.bootstrap, topic)
    headers = [dict(each.headers) for each in letters]
    return sorted((each["dlq.reason"] or b"").decode() for each in headers)


@pytest.fixture
def topics(broker: "Broker") -> "Broker":
    """A broker with orders, two of which cannot be decoded, and an empty dead-letter topic."""
    for name in ("orders", "orders-dlq"):
        create_topic(broker.bootstrap, name, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, order in enumerate(ORDERS):
        producer.produce("orders", order, str(number), partition=number % 2)
    assert producer.flush(30) == 0
    return broker


@pytest.fixture
def broker() -> Iterator["Broker"]:
    from barnabas.testing.broker import Broker

    with Broker() as running:
        yield running


def test_files(spark: "SparkSession", topics: "Broker", tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark}
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "first.json").write_text('{"id": 7, "item": "nib"}\nno order\n')
    for code in recipes("Files", topics.bootstrap, tmp_path):
        exec(compile(code.replace(SESSION, "spark"), str(PAGE), "exec"), names)
    landed = spark.read.parquet(f"{tmp_path}/lake/orders").collect()
    assert sorted(row.id for row in landed) == [1, 2, 7]
    assert values(topics, "orders") == sorted([*ORDERS, b'{"id":7,"item":"nib"}'])
    assert reasons(topics, "orders-dlq") == ["bad-json", "bad-json", "wrong-type"]
    for name in ("files-to-orders", "orders-to-files"):
        forget_last_commit(tmp_path / "checkpoints" / name)
    names["run"](names["lines"], names["publish"], "files-to-orders")
    names["run"](names["orders"](), names["land"], "orders-to-files")
    assert len(values(topics, "orders")) == 5
    assert len(reasons(topics, "orders-dlq")) == 3
    assert spark.read.parquet(f"{tmp_path}/lake/orders").count() == 3


def test_delta(spark: "SparkSession", topics: "Broker", tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'barnabas[telemetry]'")
    names: dict[str, Any] = {"spark": spark}
    (tmp_path / "lake").mkdir()
    for code in recipes("Delta Lake", topics.bootstrap, tmp_path):
        exec(compile(code.replace(SESSION, "spark"), str(PAGE), "exec"), names)
    forget_last_commit(tmp_path / "checkpoints" / "orders-to-delta")
    names["run"](names["orders"](), names["append"], "orders-to-delta")
    table = deltalake.DeltaTable(str(tmp_path / "lake" / "orders-delta"))
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [1, 2]
    (tmp_path / "lake" / "orders-delta.sent").unlink()
    names["send_versions"]()
    assert [json.loads(each)["id"] for each in values(topics, "orders-of-delta")] == [1, 2]
    assert reasons(topics, "orders-dlq") == ["bad-json", "wrong-type"]


def test_postgres(topics: "Broker", postgres: "Postgres", tmp_path: Path) -> None:
    for statements in section("PostgreSQL", "sql"):
        postgres.execute(statements)
    postgres.execute("INSERT INTO outbox (body) VALUES ('first'), ('second')")
    driver = f'SparkSession.builder.master("local[2]").config("spark.jars.packages", "{DRIVER}")'
    code = "\n".join(recipes("PostgreSQL", topics.bootstrap, tmp_path))
    code = code.replace(SESSION, f"{driver}.getOrCreate()")
    code = code.replace("127.0.0.1:5432/shop?user=shop", postgres.address)
    job(tmp_path / "job.py", code)
    forget_last_commit(tmp_path / "checkpoints" / "orders-to-postgres")
    postgres.execute("INSERT INTO outbox (body) VALUES ('third')")
    postgres.execute(NOTED_BUT_NOT_SENT)
    job(tmp_path / "job.py", code)
    found = postgres.execute('SELECT id, item, amount, "offset" FROM orders ORDER BY id')
    assert found.splitlines() == ["1|pen|2.5|0", "2|ink||0"]
    assert values(topics, "order-events") == [b"first", b"second", b"third"]
    assert reasons(topics, "orders-dlq") == ["bad-json", "wrong-type"]


def forget_last_commit(checkpoint: Path) -> None:
    """Make Spark run the last batch again, as after a crash before it was noted."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)


def job(path: Path, code: str) -> None:
    """Run a program in a separate session, since a driver must be there when the JVM starts."""
    path.write_text(code)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    if "unresolved dependency" in done.stderr:
        pytest.skip(f"the registry has no {DRIVER}")
    assert done.returncode == 0, done.stderr[-3000:]


class Postgres:
    """A PostgreSQL server in its own folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._user = "postgres" if os.geteuid() == 0 else None
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = int(found.getsockname()[1])
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address for JDBC."""
        return f"127.0.0.1:{self._port}/postgres?user=shop"

    def start(self) -> None:
        """Create an empty database and wait until it answers."""
        data = self._folder / "data"
        if self._user:
            shutil.chown(self._folder, self._user)
        self._run("initdb", "-D", str(data), "-A", "trust", "-U", "shop", "--no-sync")
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-k", str(self._folder)]
        command = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self._port)]
        self._server = subprocess.Popen(
            [*command, *options],
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: self._psql("SELECT 1").returncode == 0, PATIENCE_S)

    def execute(self, statements: str) -> str:
        """Run SQL; return the rows, one per line."""
        done = self._psql(statements)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(PATIENCE_S)

    def _psql(self, statements: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self._programs / "psql"), "-h", "127.0.0.1", "-p", str(self._port)]
        options = ["-U", "shop", "-d", "postgres", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1"]
        return subprocess.run(
            [*command, *options], input=statements, capture_output=True, text=True, check=False
        )

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            cwd=self._folder,
            check=True,
            capture_output=True,
        )


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A server from Debian's package; skipped if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        pytest.skip("needs PostgreSQL: apt install postgresql")
    programs = found[-1].parent if found else Path(str(on_path)).parent
    with tempfile.TemporaryDirectory(prefix="barnabas-postgres-") as folder:
        server = Postgres(programs, Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
