"""Runs commands in the process of the test: one starts in milliseconds, not in a second."""

import io
import subprocess
import sys
from typing import Protocol

import pytest

from barnabas.cli.main import main


class InProcess(Protocol):
    """Runs a command as a user types it, and checks how it ends."""

    def __call__(
        self, *words: str, stdin: bytes = b"", code: int = 0
    ) -> subprocess.CompletedProcess[bytes]:
        """Return what the command printed."""


def in_process(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> InProcess:
    """Return a runner for the commands of one broker."""

    def command(
        *words: str, stdin: bytes = b"", code: int = 0
    ) -> subprocess.CompletedProcess[bytes]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--bootstrap", bootstrap])
        said, errors = capfdbinary.readouterr()
        assert int(ended.value.code or 0) == code, errors.decode()
        return subprocess.CompletedProcess(words, code, said, errors)

    return command
