"""Tests that the sessions in docs/spark-sql.md give the output that the page shows."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark-sql.md"
ADDRESS = "127.0.0.1:9092"
ORDERS = """\
{"id": 1, "customer": "ann", "amount": 11.9, "at": "2026-01-01T10:00:05Z"}
{"id": 2, "customer": "bob", "amount": 23.8, "at": "2026-01-01T10:00:50Z"}
{"id": "three", "customer": "bob"}
{"id": 4, "customer": "ann", "amount": 5.95, "at": "2026-01-01T10:00:55Z"}
{"id": 5, "customer": "ann", "amount": 1.19, "at": "2026-01-01T10:07:00Z"}
"""
PAYMENTS = '{"order_id": 2, "paid": "2026-01-01T10:01:30Z"}\n'


class Step(NamedTuple):
    """One input, and its output according to the page."""

    typed: str
    shown: str


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def steps(block: str, prompt: str) -> Iterator[Step]:
    for part in re.split(rf"^{re.escape(prompt)}", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        typed = [lines.pop(0)]
        while lines and lines[0].startswith("   > "):
            typed.append(lines.pop(0).removeprefix("   > "))
        yield Step("\n".join(typed), "\n".join(lines).strip())


@pytest.mark.slow
def test_the_sql_session_gives_what_the_page_shows(spark: "SparkSession") -> None:
    session = spark.newSession()
    with Broker() as broker:
        first, second = blocks("text")
        assert [sql_answer(session, broker, each) for each in steps(first, "sql> ")] == [
            each.shown for each in steps(first, "sql> ")
        ]
        (example,) = (each for each in blocks("python") if "register_topics" in each)
        exec(example.replace(ADDRESS, broker.bootstrap), {"spark": session})
        assert [sql_answer(session, broker, each) for each in steps(second, "sql> ")] == [
            each.shown for each in steps(second, "sql> ")
        ]
    session.sql("DROP DATABASE barnabas CASCADE")


def sql_answer(session: "SparkSession", broker: Broker, step: Step) -> str:
    from barnabas.spark import register

    register(session)
    frame = session.sql(step.typed.removesuffix(";").replace(ADDRESS, broker.bootstrap))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        if frame.columns:
            frame.show(truncate=False)
    return output.getvalue().strip()


@pytest.mark.slow
def test_the_console_session_gives_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(blocks("sql")[0])
    (functions,) = (each for each in blocks("python") if "def net" in each)
    (tmp_path / "shop_functions.py").write_text(functions)
    (tmp_path / "orders.jsonl").write_text(ORDERS)
    (tmp_path / "payments.jsonl").write_text(PAYMENTS)
    (console,) = blocks("console")
    with Broker() as broker:
        found = [console_answer(tmp_path, broker, each) for each in steps(console, "$ ")]
    assert found == [settled(each.shown) for each in steps(console, "$ ")]


def console_answer(folder: Path, broker: Broker, step: Step) -> str:
    command = folder / "bin" / "barnabas"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas.cli "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "BARNABAS_BOOTSTRAP": broker.bootstrap,
    }
    done = subprocess.run(
        ["bash", "-c", step.typed],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return settled(done.stdout.replace(f"{folder}/", ""))


def settled(text: str) -> str:
    """Return a text without what differs from run to run: rates, durations and widths."""
    text = re.sub(r"\([\d,]+/s\)", "(N/s)", text)
    text = re.sub(r"\b[\d.]+ ?(ms|s)\b", "TIME", text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())
