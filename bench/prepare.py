"""Prepares a run: Kafka's jars, librdkafka, OpenSSL and the native load programs.

Each step is skipped if its outcome is newer than its inputs. An error about a missing program has
the command that installs it.
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
HEADERS = {
    "librdkafka-dev": Path("/usr/include/librdkafka/rdkafka.h"),
    "libssl-dev": Path("/usr/include/openssl/ssl.h"),
}
"""The packages of Debian with the headers for the load programs."""
COMPILE = ["cc", "-O2", "-Wall", "-Wextra"]


class MissingError(Exception):
    """Something is not installed; the message has the command that installs it."""


def prepare(brokers: list[str]) -> None:
    """Prepare a run of these brokers."""
    WORK.mkdir(exist_ok=True)
    shutil.rmtree(LOGS, ignore_errors=True)
    need("java", "apt-get install -y openjdk-17-jre-headless")
    need("cc", "apt-get install -y gcc libc6-dev")
    if "barnabas" in brokers and not BARNABAS.exists():
        raise MissingError("barnabas is not installed beside this Python; type: make .venv/.dev")
    fetch_jars()
    install_headers()
    compile_programs()
    compile_package()
    allow_many_files()


def compile_package() -> None:
    """Compile the package to bytecode, as an installer does.

    If Python cannot write bytecode, a broker would compile its sources at each start, which takes
    as long as the rest of the start.
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


def install_headers() -> None:
    """Find or install the headers and libraries that the load programs need."""
    missing = [package for package, header in HEADERS.items() if not header.exists()]
    if not missing:
        return
    remedy = f"apt-get install -y {' '.join(missing)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingError(f"headers of libraries are missing; type: sudo {remedy}")
    check(["apt-get", "update", "-qq"])
    check(remedy.split())


def compile_programs() -> None:
    """Build each program if it or a header changed."""
    headers = list(NATIVE.glob("*.h"))
    system = ["-lrdkafka", "-lpthread"]
    newest = [*newest_librdkafka(), "-lpthread"]
    programs = {
        LOAD: system,
        WIRE: ["-lssl", "-lcrypto"],
        GROUP: newest,
        TRANSFORM: newest,
        GAP: newest,
    }
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
    """Run a step of the preparation; an error shows its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise MissingError(f"failed: {' '.join(command)}\n{said}")


def allow_many_files() -> None:
    """Raise the descriptor limit: a thousand connections need as many in client and broker."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
