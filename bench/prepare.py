"""Prepares a run: Kafka's jars, librdkafka and the native load programs.

Each step is skipped when its outcome is newer than what it is made from. What cannot be installed
here is answered with the one line to type.
"""

import compileall
import os
import resource
import shutil
import subprocess
from pathlib import Path

import confluent_kafka

import barnabas
from bench.places import (
    BARNABAS,
    GAP,
    GROUP,
    JARS,
    LOAD,
    LOGS,
    NATIVE,
    POM,
    TRANSFORM,
    WIRE,
    WORK,
)

COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
LIBRDKAFKA_HEADER = Path("/usr/include/librdkafka/rdkafka.h")
COMPILE = ["cc", "-O2", "-Wall", "-Wextra"]


class MissingError(Exception):
    """Something is not installed; the text says what to type."""


def prepare(brokers: list[str]) -> None:
    """Make everything ready for a run of these brokers."""
    WORK.mkdir(exist_ok=True)
    shutil.rmtree(LOGS, ignore_errors=True)
    need("java", "apt-get install -y openjdk-17-jre-headless")
    need("cc", "apt-get install -y gcc libc6-dev")
    if "barnabas" in brokers and not BARNABAS.exists():
        raise MissingError("barnabas is not installed beside this Python; type: make .venv/.dev")
    fetch_jars()
    install_librdkafka()
    compile_programs()
    compile_package()
    allow_many_files()


def compile_package() -> None:
    """Give the package the bytecode that an installer gives it.

    Run from its sources where Python must not write bytecode, a broker would compile itself at
    each start, which takes as long as all the rest of the start.
    """
    compileall.compile_dir(Path(barnabas.__file__).parent, quiet=1)


def need(program: str, remedy: str) -> None:
    """Check that a program is on the path."""
    if not shutil.which(program):
        raise MissingError(f"{program} is missing; type: {remedy}")


def is_newer(made: Path, *sources: Path) -> bool:
    """Whether an outcome is up to date."""
    return made.exists() and all(
        made.stat().st_mtime >= source.stat().st_mtime for source in sources
    )


def fetch_jars() -> None:
    """Kafka's broker and tools, by their Maven names, as the pom lists them."""
    stamp = JARS / ".done"
    if is_newer(stamp, POM):
        return
    need("mvn", "apt-get install -y maven")
    shutil.rmtree(JARS, ignore_errors=True)
    scope = ["-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
    check(["mvn", "-q", "-B", "-f", str(POM), COPY_DEPENDENCIES, *scope])
    stamp.touch()


def install_librdkafka() -> None:
    """The header and library that load.c needs: installed here when we may."""
    if LIBRDKAFKA_HEADER.exists():
        return
    remedy = "apt-get install -y librdkafka-dev"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingError(f"librdkafka's header is missing; type: sudo {remedy}")
    check(["apt-get", "update", "-qq"])
    check(remedy.split())


def compile_programs() -> None:
    """Build each program when it or a header changed."""
    headers = list(NATIVE.glob("*.h"))
    system = ["-lrdkafka", "-lpthread"]
    newest = [*newest_librdkafka(), "-lpthread"]
    programs = {LOAD: system, WIRE: [], GROUP: newest, TRANSFORM: newest, GAP: newest}
    for program, libraries in programs.items():
        source = NATIVE / f"{program.name}.c"
        if not is_newer(program, source, *headers):
            check([*COMPILE, "-o", str(program), str(source), *libraries])


def newest_librdkafka() -> list[str]:
    """The library inside confluent-kafka: the system's is too old for the consumer protocol."""
    package = Path(confluent_kafka.__file__).parent
    found = sorted(package.with_name("confluent_kafka.libs").glob("librdkafka*"))
    if not found:
        raise MissingError("confluent-kafka carries no librdkafka; type: make .venv/.dev")
    return [str(found[0]), f"-Wl,-rpath,{found[0].parent}"]


def check(command: list[str]) -> None:
    """Run a step of the preparation; a failure shows what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise MissingError(f"failed: {' '.join(command)}\n{said}")


def allow_many_files() -> None:
    """A thousand connections need as many descriptors, in the client and in the broker."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
