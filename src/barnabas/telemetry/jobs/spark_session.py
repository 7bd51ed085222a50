"""Starts the Spark session that the jobs run in, on this machine or on a cluster.

The output of Spark, its JVM and its Python workers goes to a file, so that log lines do not disturb
the display, and an operator finds the cause of a failure in one place.

On a cluster the package is sent with the session (see `packing`), and missing packages of the
workers are found before the first job starts (see `workers`), instead of by a traceback later.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.telemetry.findings.causes import explain
from barnabas.telemetry.jobs import packing, workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OLDEST = 17
TASK_ATTEMPTS = 4
"""As on a cluster, a worker process that dies fails a task, not the query."""

GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has already started a JVM."""

WORKER_PYTHON = "spark.pyspark.python"
JVM_PATIENCE_S = 20.0

LOCAL_MEMORY = "2g"
SHUFFLE_PARTITIONS = "16"
"""For a cluster; Spark's 200 would be 200 state files for each batch of each job with windows."""

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Works even if the machine's own name does not resolve."""

UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Sockets between JVM and Python workers. Over TCP the start of a task takes 40 ms: the JVM delays
the second packet until the first is acknowledged, and the worker delays the acknowledgement."""
SOCKET_FOLDER_MAX = 50
"""A socket's path may have 104 characters, of which Spark takes half for the name."""

PACKAGE_MANAGERS = (
    ("apt-get", "apt-get install -y openjdk-{debian}-jre-headless"),
    ("dnf", "dnf install -y java-21-openjdk-headless"),
    ("zypper", "zypper install -y java-21-openjdk-headless"),
    ("pacman", "pacman -S jre21-openjdk-headless"),
    ("apk", "apk add openjdk21-jre-headless"),
)


class SessionError(Exception):
    """A session cannot be started; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """The master of the jobs, and their settings."""

    name: str = "barnabas telemetry"
    """The name of the job on Spark's pages."""
    master: str | None = "local[*]"
    """None leaves it to spark-submit, or to spark-defaults.conf."""
    driver_memory: str | None = None
    """The memory: 2g on this machine, Spark's default elsewhere."""
    log: Path | None = None
    """The file for Spark's output; None leaves it on stderr."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """More settings of Spark; they override the others."""
    lake: str | None = None
    """The folder of the tables; workers on other machines must have access to it."""


def is_local(master: str | None) -> bool:
    """Return whether driver and workers are one process."""
    return master is not None and master.partition("[")[0] == "local"


def with_attempts(master: str) -> str:
    """Return a local master whose tasks are retried, as on a cluster."""
    found = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return master if found is None else f"local[{found[1] or 1},{TASK_ATTEMPTS}]"


def configuration(
    settings: SessionSettings, base: Mapping[str, str], cores: int, folder: str
) -> dict[str, str]:
    """Return Spark's settings: those of the jobs, ours, and the user's.

    Settings in a cluster's spark-defaults.conf are kept.
    """
    found = {
        **QUIET,
        **base,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS,
    }
    if settings.driver_memory is not None:
        found["spark.driver.memory"] = settings.driver_memory
    if settings.master is not None:
        found["spark.master"] = settings.master
    if settings.master is not None and is_local(settings.master):
        found |= {
            **LOCAL,
            "spark.master": with_attempts(settings.master),
            "spark.driver.memory": settings.driver_memory or LOCAL_MEMORY,
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
            "spark.sql.shuffle.partitions": str(cores),
        }
        if len(folder) <= SOCKET_FOLDER_MAX:
            found[UNIX_SOCKETS] = "true"
    return {**found, **settings.conf}


@contextmanager
def session(settings: SessionSettings, base: Mapping[str, str]) -> "Iterator[SparkSession]":
    """Return a session that ends with the block; raise `SessionError` if there can be none."""
    if GATEWAY not in os.environ:
        check_java()
    from pyspark.sql import SparkSession

    if is_local(settings.master):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    elif WORKER_PYTHON in settings.conf:
        # Only spark-submit reads the setting; a session that Python starts uses this.
        os.environ["PYSPARK_PYTHON"] = settings.conf[WORKER_PYTHON]
    with tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as folder:
        builder = SparkSession.builder.appName(settings.name)
        for name, value in configuration(settings, base, os.cpu_count() or 1, folder).items():
            builder = builder.config(name, value)
        spark = _started(builder, settings)
        try:
            if not is_local(spark.sparkContext.master):
                _send_package(spark, Path(folder), settings.lake)
            yield spark
        except KeyboardInterrupt:
            # It may have interrupted a call of the JVM, which can then not be used any more.
            abandon()
            raise
        finally:
            _end(spark)


def _end(spark: "SparkSession") -> None:
    """Stop the session and its JVM, which would otherwise run until this process ends."""
    from pyspark import SparkContext

    # A JVM that was killed cannot be stopped any more.
    with suppress(Exception):
        spark.stop()
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(JVM_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


def abandon() -> None:
    """Kill the JVM at once."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()


def _started(builder: "SparkSession.Builder", settings: SessionSettings) -> "SparkSession":
    try:
        with _output_to(settings.log):
            return builder.getOrCreate()
    except Exception as error:
        where = f"; {settings.log} says more" if settings.log else ""
        first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        place = settings.master or "the master that spark-submit names"
        raise SessionError(f"Spark did not start on {place}: {first}{where}") from error


def _send_package(spark: "SparkSession", folder: Path, lake: str | None) -> None:
    archive = packing.own_archive()
    if archive is None:
        archive = folder / packing.ARCHIVE
        packing.write(archive)
        spark.sparkContext.addPyFile(str(archive))
    # Spark plans streams in Python processes beside the driver, which do not get the added files.
    environment = spark.sparkContext.environment
    known = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(archive), *([known] if known else [])])
    try:
        lacks = workers.lacks(spark, lake)
    except Exception as error:
        cause = explain(str(error)).sentence
        raise SessionError(f"The workers cannot run Python tasks: {cause}") from error
    if lacks:
        raise SessionError(" ".join(lacks))


@contextmanager
def _output_to(log: Path | None) -> Iterator[None]:
    """Redirect processes that start in the block to a file; this process is not affected."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    try:
        yield
    finally:
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def check_java() -> None:
    """Raise unless there is a Java that Spark supports."""
    problem = java_problem()
    if problem is not None:
        raise SessionError(problem)


def java_problem() -> str | None:
    """Return the problem with Java on this machine, with the command to fix it; None if none."""
    program = java_program(os.environ)
    if program is None:
        return f"Spark needs Java, which is not here; type: {java_remedy()}"
    # The program is the user's own Java.
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = java_version(said.stderr + said.stdout)
    if version is None or version >= JAVA_OLDEST:
        return None
    return (
        f"Spark needs Java {JAVA_OLDEST} or later and {program} is Java {version}; "
        f"type: {java_remedy()}"
    )


def java_program(environment: Mapping[str, str]) -> str | None:
    """Return the Java that Spark's scripts would use."""
    home = environment.get("JAVA_HOME")
    if home:
        return shutil.which(str(Path(home) / "bin" / "java"))
    return shutil.which("java", path=environment.get("PATH"))


def java_version(text: str) -> int | None:
    """Read `java -version`; 1.8 is 8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def java_remedy() -> str:
    """Return the one line that installs Java on this system."""
    if platform.system() == "Darwin":
        return "brew install openjdk@17 && export JAVA_HOME=$(brew --prefix openjdk@17)"
    sudo = "" if os.geteuid() == 0 else "sudo "
    for program, line in PACKAGE_MANAGERS:
        if shutil.which(program):
            return sudo + line.format(debian=_debian_java())
    return "install a Java 17 runtime (https://adoptium.net) and set JAVA_HOME to its folder"


def _debian_java() -> int:
    """Return the Java of the distribution: Debian 13 dropped 17."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return JAVA_OLDEST
    major = release.get("VERSION_ID", "").partition(".")[0]
    newer = release.get("ID") == "debian" and major.isdigit() and int(major) >= 13
    return 21 if newer else JAVA_OLDEST
