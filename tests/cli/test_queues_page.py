"""Tests docs/queues.md: every Python example and every command runs, in order."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing.broker import Broker
from tests.cli.commands_in_process import in_process

pytestmark = pytest.mark.compat

PAGE = Path(__file__).parents[2] / "docs" / "queues.md"


@pytest.fixture
def bootstrap() -> Any:
    """The page's queues need a broker of their own."""
    with Broker() as broker:
        yield broker.bootstrap


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_runs(bootstrap: str, capfd: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for example in examples("python"):
        text = example.replace("127.0.0.1:9092", bootstrap)
        exec(compile(text, str(PAGE), "exec"), names)
    said = capfd.readouterr().out
    assert len(examples("python")) == 8
    assert said.startswith("5\n")
    assert "30 seconds left" in said
    assert said.count("done:") >= 2


def test_every_command_runs(
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    run = in_process(bootstrap, monkeypatch, capfdbinary)
    (commands,) = examples("sh")
    said = [run(*shlex.split(line)[1:]).stdout for line in commands.splitlines()]
    assert len(said) == 7
    assert b'"deliveries": 1' in said[3]
    assert said[-1] == b"Skipped 1 message of queue mail\n"
