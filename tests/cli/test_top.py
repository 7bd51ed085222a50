"""Tests `barnabas top` in a terminal: what it shows, its keys, and the terminal afterwards."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import pytest

pytestmark = pytest.mark.compat

PATIENCE_S = 60.0
LINES, COLUMNS = 24, 80
ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A terminal in which the command runs."""

    def __init__(self, *words: str) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(LINES, COLUMNS)
        self.settings = termios.tcgetattr(self._theirs)
        self.output = b""
        # These would say another size than the terminal.
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        environment["TERM"] = "xterm-256color"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", "top", *words],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys; what follows is read from here on."""
        self.output = b""
        os.write(self._ours, keys.encode())

    def read_until(self, text: str) -> None:
        """Return once the text (a regular expression) was printed since the last keys."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not re.search(text.encode(), CONTROL.sub(b"", self.output)):
            assert time.monotonic() < deadline_s, f"no {text!r} in {self.output[-3000:]!r}"
            self._read()

    def end(self) -> int:
        """Read all output until the command ends, and return its exit code."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline_s, "it does not end"
            self._read()
        self._read()
        return self.process.returncode

    def check_restored(self) -> None:
        assert termios.tcgetattr(self._theirs) == self.settings
        assert self.output.rindex(LEAVE_SCREEN) > self.output.find(ENTER_SCREEN)
        assert SHOW_CURSOR in self.output

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.05)[0]:
            self.output += os.read(self._ours, 1 << 16)


@contextmanager
def watching(bootstrap: str, *words: str) -> Iterator[Terminal]:
    with Terminal("--bootstrap", bootstrap, "--interval", "500ms", *words) as terminal:
        terminal.read_until("Brokers 1 of 1 up")
        yield terminal


@pytest.fixture
def single(bootstrap: str) -> str:
    if "," in bootstrap:
        pytest.skip("these look at a cluster of one broker")
    return bootstrap


def test_keys_move_through_the_pages(single: str, topic: str) -> None:
    with watching(single) as terminal:
        terminal.type("\t\r")
        terminal.read_until("replication factor 1")
        terminal.type("\x1b[D")
        terminal.read_until("GROUP")
        terminal.type("?")
        terminal.read_until("a member has the partition")
        terminal.type("x p")
        terminal.read_until("PAUSED")
        terminal.type("q")
        assert terminal.end() == 0
        terminal.check_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_restore_the_terminal(single: str, number: signal.Signals) -> None:
    with watching(single) as terminal:
        terminal.process.send_signal(number)
        assert terminal.end() == 0
        terminal.check_restored()


def test_an_exception_restores_the_terminal(single: str) -> None:
    broken = "import barnabas.top.top_loop as m; m._loop = lambda *_: 1 / 0; "
    code = broken + "from barnabas.cli.main import main; main()"
    with Terminal() as terminal:
        terminal.process.kill()
        terminal.process.wait()
        terminal.process = subprocess.Popen(
            [sys.executable, "-c", code, "top", "--bootstrap", single],
            stdin=terminal._theirs,
            stdout=terminal._theirs,
            stderr=terminal._theirs,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        assert terminal.end() != 0
        assert b"ZeroDivisionError" in terminal.output
        terminal.check_restored()


def test_it_follows_the_size_of_the_terminal(single: str) -> None:
    with watching(single) as terminal:
        terminal.resize(40, 130)
        terminal.output = b""
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.read_until(r"[^\r\n]{110,}[0-9]+s ago")
        terminal.type("q")
        assert terminal.end() == 0
        terminal.check_restored()


def test_once_prints_one_frame(single: str, topic: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas.cli", "top", "--once"),
            *("--bootstrap", single, "--interval", "500ms"),
        ],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    lines = done.stdout.decode().rstrip("\n").split("\n")
    assert len(lines) == LINES
    assert all(len(line) <= COLUMNS for line in lines)
    assert b"\x1b" not in done.stdout
    assert "Brokers 1 of 1 up" in lines[1]


def test_json_is_the_state(single: str, topic: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas.cli", "top", "--json"),
            *("--bootstrap", single, "--interval", "500ms"),
        ],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    assert found["health"]["verdict"] == "healthy"
    assert found["throughput"]["records_per_s"] is not None
    assert topic in [each["name"] for each in found["topics"]]


def test_no_broker() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas.cli", "top", "--once"),
            *("--bootstrap", "127.0.0.1:1", "--interval", "500ms"),
        ],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert b"No broker answered at 127.0.0.1:1" in done.stderr
    assert b"Traceback" not in done.stderr
