"""Tests the console as processes: its command, and as a child of `serve`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually

PROGRAM = (sys.executable, "-m", "barnabas.cli")
PATIENCE_S = 60.0


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*PROGRAM, "console", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        **options,
    )
    assert "Traceback" not in done.stderr
    return done


@contextmanager
def console(*words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run the command; yield its process and its ready line."""
    process = subprocess.Popen(
        [*PROGRAM, "console", "--listen", "127.0.0.1:0", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def test_it_serves_until_sigterm_and_ends_cleanly(broker: Broker) -> None:
    with console("--bootstrap", broker.bootstrap) as (process, ready):
        assert (ready["read_only"], ready["login"]) == (False, "none")
        with httpx.Client(timeout=PATIENCE_S) as client:
            overview = f"{ready['url']}api/overview"
            eventually(lambda: client.get(overview).status_code == 200, PATIENCE_S)
            assert (
                "default-src 'self'" in client.get(ready["url"]).headers["content-security-policy"]
            )
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "Traceback" not in errors


def test_it_starts_without_a_broker_and_says_why_there_is_nothing() -> None:
    with console("--bootstrap", "127.0.0.1:1") as (_, ready):
        found = eventually(lambda: _failure(ready["url"]), PATIENCE_S)
    assert "127.0.0.1:1" in found


def _failure(url: str) -> str:
    found = httpx.get(f"{url}api/overview").json()["error"]
    return str(found) if "has not answered yet" in found else ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], "choose --login password"),
        (["--listen", "0.0.0.0:0", "--login", "none", "--read-write"], "without a login"),
        (["--login", "password"], "--login password needs --passwords FILE"),
        (["--login", "oidc"], "--oidc-issuer"),
        (["--login", "magic"], "none, password, broker, oidc"),
        (["--listen", "here"], "is not HOST:PORT"),
        (["--base-path", "/a b"], "--base-path"),
        (["--public-url", "ftp://x"], "--public-url"),
        (["--alertmanager", "file:///etc/passwd"], "--alertmanager"),
        (["--passwords", "/none", "--login", "password"], "/none"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(
    words: list[str], sentence: str
) -> None:
    done = run("--listen", "127.0.0.1:0", *words)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_a_port_that_is_taken_is_named(broker: Broker) -> None:
    done = run("--listen", broker.bootstrap)
    assert done.returncode == 1
    assert f"--listen {broker.bootstrap}" in done.stderr


def test_a_password_is_written_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "users"
    done = run("password", "alice", "--passwords", str(file), input="correct horse\n")
    assert done.returncode == 0
    assert "correct horse" not in done.stdout + done.stderr + file.read_text()
    assert file.read_text().startswith("alice:scrypt$")
    line = run("password", "bob", "--read-only", input="correct horse\n").stdout
    assert line.startswith("bob:scrypt$")
    assert line.endswith(":read-only\n")
    assert run("password", "bob", input="short\n").returncode == 1


def test_the_help_has_an_example() -> None:
    assert "Example: barnabas console" in run("--help").stdout
    assert "Example: barnabas console password" in run("password", "--help").stdout


def test_serve_starts_a_console_that_ends_with_the_broker_however_it_ends(tmp_path: Path) -> None:
    words = ("--console", "127.0.0.1:0")
    with BrokerSubprocess(tmp_path / "data", arguments=words) as broker:
        assert broker.process.stdout is not None
        line = json.loads(broker.process.stdout.readline())
        assert line["event"] == "console"
        assert httpx.get(f"{line['url']}api/session").status_code == 200
        (child,) = _children(broker.process.pid)
        broker.kill()
        eventually(lambda: not Path(f"/proc/{child}").exists(), PATIENCE_S)
        broker.start()
        assert json.loads(broker.process.stdout.readline())["event"] == "console"
        (child,) = _children(broker.process.pid)
        assert broker.terminate() == 0
        assert not Path(f"/proc/{child}").exists()


def _children(pid: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                is_console = b"console" in Path(entry.path, "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == pid and is_console:
                found.append(int(entry.name))
    return found
