"""Tests `barnabas telemetry demo` from an empty folder on, and interrupted at every step."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.waiting import eventually
from tests.support.pipelines.pipeline import telemetry

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
]
PATIENCE_S = 120.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for all temporary files of the demo."""
    found = tmp_path / "tmp"
    found.mkdir()
    return found


def environment(place: Path) -> dict[str, str]:
    """Mark the processes of a demo, so that remaining ones can be found."""
    return {**os.environ, "TMPDIR": str(place), "PYTHONUNBUFFERED": "1"}


def left_running(place: Path) -> list[str]:
    return list(_marked(f"TMPDIR={place}\0".encode()))


def _marked(mark: bytes) -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    yield (entry / "cmdline").read_bytes().decode(errors="replace")[:200]
            except OSError:
                continue


def test_the_demo_leaves_a_page_and_nothing_else(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    command = telemetry("demo", "--gpus", "8", "--out", str(page))

    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(place), cwd=place
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "[6/6]" in done.stdout
    assert "9 GPUs on 2 hosts" in done.stdout
    assert "</html>" in page.read_text()
    assert list(place.iterdir()) == []
    assert left_running(place) == []


@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_an_interrupted_demo_leaves_nothing(
    step: int, number: signal.Signals, place: Path, tmp_path: Path
) -> None:
    command = telemetry("demo", "--gpus", "8", "--out", str(tmp_path / "report.html"))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(place), cwd=place
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"[{step}/6]"):
                process.send_signal(number)
                break
        rest = process.stdout.read()
        code = process.wait(PATIENCE_S)

    assert code != 0, rest
    assert "[6/6]" not in rest
    eventually(lambda: left_running(place) == [], PATIENCE_S)
    eventually(lambda: list(place.iterdir()) == [], PATIENCE_S)


def test_a_page_that_cannot_be_written_is_reported_at_once(place: Path) -> None:
    command = telemetry("demo", "--out", str(place / "nowhere" / "report.html"))

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "There is no directory" in done.stderr
