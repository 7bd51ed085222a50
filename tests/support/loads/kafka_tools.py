"""Runs the command-line tools of Apache Kafka by their main classes, in one JVM.

`tests/compat/java/RunTools.java` takes one command a line, so that ten tools cost one start.
"""

import base64
import fcntl
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-Xmx256M")
FETCH_TIMEOUT_S = 280.0


class Done(NamedTuple):
    """The exit status and output of a command."""

    code: int
    output: str


class Jvm:
    """Runs tools one after the other."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap: str) -> None:
        self._process = process
        self._bootstrap = bootstrap

    def at(self, bootstrap: str) -> "Jvm":
        """Return the same JVM for tools that connect to another address."""
        return Jvm(self._process, bootstrap)

    def run(self, name: str, *arguments: str, text: str = "") -> Done:
        """Run a main class with the given standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        coded = base64.b64encode(text.encode()).decode()
        words = (name, coded, "--bootstrap-server", self._bootstrap, *arguments)
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        code, _, output = self._process.stdout.readline().strip().partition(" ")
        return Done(int(code), base64.b64decode(output).decode())


@contextmanager
def tools(
    run_tools: Path, jars: str, bootstrap: str, *, flags: Sequence[str] = ()
) -> Iterator[Jvm]:
    """Start a JVM with Kafka's jars, and perhaps further flags; it ends with the block."""
    with subprocess.Popen(
        ["java", *JVM_FLAGS, *flags, "-cp", jars, str(run_tools)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield Jvm(process, bootstrap)
        assert process.stdin is not None
        process.stdin.close()


class MissingToolError(Exception):
    """Java, Maven or a download is missing; the message says which."""


def fetch_jars(pom: Path, folder: Path) -> str:
    """Download Apache Kafka's jars once; return the class path."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise MissingToolError(f"{program} is not installed")
    with _alone(folder):
        if not list(folder.glob("kafka-tools-*.jar")):
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
            _run("Maven could not fetch Kafka's jars", ["mvn", "-q", "-B", "-f", str(pom), *goal])
    return f"{folder}/*"


def compiled(source: Path, jars: str, folder: Path) -> list[str]:
    """Compile a single-file program if it changed; return the command that runs it."""
    made = folder / f"{source.stem}.class"
    with _alone(folder):
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            words = ["javac", "-d", str(folder), "-cp", jars, str(source)]
            _run(f"{source.name} could not be compiled", words)
    return ["java", *JVM_FLAGS, "-cp", f"{folder}:{jars}", source.stem]


def java_outcomes(jars: str, program: Path, bootstrap: str) -> dict[str, str]:
    """Run all dialogues of a Java program; return "pass" or the error of each."""
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, str(program), bootstrap],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    return {row[1]: "pass" if row[0] == "pass" else row[-1] for row in rows if len(row) > 1}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other test process fills it at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(failure: str, command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise MissingToolError(f"{failure}: {(done.stdout + done.stderr).strip()[:300]}")
