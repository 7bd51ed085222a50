"""Tests log lines for operators and for machines."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from barnabas import logs
from barnabas.model.errors import ConfigError


@pytest.fixture(autouse=True)
def no_forwarding_afterwards() -> Iterator[None]:
    yield
    logging.getLogger().removeHandler(logs._forward)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def configured(stream: StringIO, *, as_json: bool = False, level: str = "info") -> logs.Logger:
    logs.configure(json=as_json, level=level, stream=stream)
    return logs.get("storage")


def test_a_file_gets_plain_lines() -> None:
    stream = StringIO()
    configured(stream).info("segment rolled", topic="orders", partition=3)
    line = stream.getvalue()
    assert "segment rolled" in line
    assert "[storage]" in line
    assert "topic=orders" in line
    assert "\x1b" not in line
    assert line.endswith("\n")


def test_a_terminal_gets_colours() -> None:
    stream = Terminal()
    configured(stream).info("listening")
    assert "\x1b[" in stream.getvalue()


def test_a_machine_gets_json() -> None:
    stream = StringIO()
    configured(stream, as_json=True).warning("disk nearly full", free_bytes=17)
    fields = json.loads(stream.getvalue())
    assert fields.pop("timestamp").endswith("Z")
    assert fields == {
        "event": "disk nearly full",
        "free_bytes": 17,
        "level": "warning",
        "logger": "storage",
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_an_exception_brings_its_traceback(as_json: bool) -> None:
    stream = StringIO()
    logger = configured(stream, as_json=as_json)
    try:
        Path("/").read_bytes()
    except OSError:
        logger.exception("append failed")
    assert "Traceback" in stream.getvalue()
    assert "Is a directory" in stream.getvalue()


def test_lines_below_the_level_are_not_written() -> None:
    stream = StringIO()
    logger = configured(stream, level="WARNING")
    logger.info("not this")
    logger.warning("but this")
    assert "not this" not in stream.getvalue()
    assert "but this" in stream.getvalue()


def test_a_logger_follows_the_last_configuration() -> None:
    first, second = StringIO(), StringIO()
    logger = configured(first)
    logger.info("one")
    configured(second)
    logger.info("two")
    assert "two" not in first.getvalue()
    assert "two" in second.getvalue()


def test_one_name_has_one_logger() -> None:
    assert logs.get("raft") is logs.get("raft")
    assert logs.get("raft") is not logs.get("storage")


def test_what_libraries_write_takes_the_same_form() -> None:
    stream = StringIO()
    configured(stream, as_json=True)
    logging.getLogger("asyncio").error("Task exception was never retrieved")
    fields = json.loads(stream.getvalue())
    assert fields["logger"] == "asyncio"
    assert fields["event"] == "Task exception was never retrieved"


def test_a_wrong_level_is_refused() -> None:
    with pytest.raises(ConfigError, match="There is no log level 'loud'; write one of debug, info"):
        logs.configure(level="loud")


def loaded_after(statements: str) -> set[str]:
    program = f"{statements}\nimport sys\nprint(*(m for m in sys.modules if sys.modules[m]))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_a_logger_costs_no_import_until_it_is_used() -> None:
    assert "structlog" not in loaded_after("from barnabas import logs; logs.get('raft')")


def test_structlog_comes_without_rich() -> None:
    loaded = loaded_after("from barnabas import logs; logs.get('raft').info('started')")
    assert "structlog" in loaded
    assert "rich" not in loaded


def test_rich_can_still_be_imported_afterwards() -> None:
    assert "rich" in loaded_after("from barnabas import logs; logs.configure(); import rich")
