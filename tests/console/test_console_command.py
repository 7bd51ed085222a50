"""Tests the console as processes: its command, and as a child of `serve`."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from tests.support.hidden_modules import hide

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
    assert f"cannot listen on {broker.bootstrap}: Address already in use" in done.stderr


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


@pytest.mark.slow
def test_a_broker_goes_on_without_a_console_whose_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with BrokerSubprocess(tmp_path / "data", arguments=("--console", listen)) as broker:
            eventually(lambda: "the web console has ended" in broker.log_text(), PATIENCE_S)
            assert f"cannot listen on {listen}: Address already in use" in broker.log_text()
            AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=PATIENCE_S)
            assert broker.terminate() == 0


@pytest.mark.parametrize(
    ("listen", "sentence"),
    [
        ("8080", "--console '8080' is not HOST:PORT"),
        ("0.0.0.0:0", "barnabas console --login password"),
        ("127.0.0.1:0", "needs uvicorn, which is not installed; run: pip install"),
    ],
)
def test_a_console_that_cannot_work_is_refused_before_the_broker_starts(
    tmp_path: Path, without_uvicorn: dict[str, str], listen: str, sentence: str
) -> None:
    data = tmp_path / "data"
    done = subprocess.run(
        [*PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", data, "--console", listen],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=without_uvicorn,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not data.exists()


@pytest.mark.parametrize("words", [("cluster", "up", "--console"), ("console",)])
def test_commands_name_the_extra_that_is_missing(
    tmp_path: Path, without_uvicorn: dict[str, str], words: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [*PROGRAM, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=without_uvicorn,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs uvicorn, which is not installed; run: pip install 'barnabas[console]'" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "modules"], "no cluster was begun"


@pytest.fixture
def without_uvicorn(tmp_path: Path) -> dict[str, str]:
    """Variables with which Python finds no uvicorn."""
    return {**os.environ, "PYTHONPATH": str(hide(tmp_path / "modules", "uvicorn"))}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_has_a_console_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with port_8080_taken(), cluster_up(tmp_path / "cluster") as (process, ready):
        url = ready["console"]
        assert not url.endswith(":8080/")
        (child,) = _children(process.pid)
        with httpx.stream("GET", f"{url}api/events", timeout=PATIENCE_S) as events:
            assert next(events.iter_lines()).startswith("retry")
            assert httpx.get(f"{url}api/session").json()["cluster"]["name"] == "cluster"
            process.send_signal(number)
            rest, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, rest) == (0, "")
        assert "console ended" not in errors
        assert not Path(f"/proc/{child}").exists()


@contextmanager
def cluster_up(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a cluster of one broker with a console; yield its process and its ready line."""
    words = ("cluster", "up", "--brokers", "1", "--console", "--json")
    process = subprocess.Popen(
        [*PROGRAM, *words, "--data", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()


@contextmanager
def port_8080_taken() -> Iterator[None]:
    """Hold the port that the console of a cluster prefers, unless another process does."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(socket.create_server(("127.0.0.1", 8080)))
        yield


def _children(pid: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                is_console = b"cli\0console" in Path(entry.path, "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == pid and is_console:
                found.append(int(entry.name))
    return found
