"""What every client's tests share: a broker, records to send, and Apache Kafka's jars."""

import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker

JAVA = Path(__file__).parent / "java"
JARS = Path(__file__).parents[2] / "build" / "java"
FIRST_MS = 1_700_000_000_000
LARGE_BYTES = 20_000
_numbers = count()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all clients; each test has topics of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic() -> str:
    """Return a name that no other test uses."""
    return f"compat-{next(_numbers)}"


@pytest.fixture(scope="session")
def sent() -> list[Record]:
    """Records of every shape, ten milliseconds apart, as they should come back."""
    shapes: list[tuple[bytes | None, bytes | None]] = [
        (None, b"no key"),
        (b"k", b"value"),
        (b"gone", None),
        (b"", b""),
        (b"large", bytes(range(256)) * (LARGE_BYTES // 256)),
    ]
    headers = ((), (("one", b"1"),), (("", b""), ("one", b"x"), ("one", b"y")))
    return [
        Record(n, FIRST_MS + 10 * n, *shapes[n % len(shapes)], headers[n % len(headers)])
        for n in range(60)
    ]


@pytest.fixture(scope="session")
def jars() -> str:
    """Fetch Apache Kafka's jars once, or say why the tests cannot run."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not list(JARS.glob("kafka-tools-*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        command = ["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), *goal]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        if done.returncode:
            pytest.skip(f"Maven could not fetch Kafka's jars: {done.stdout.strip()[:200]}")
    return f"{JARS}/*"
