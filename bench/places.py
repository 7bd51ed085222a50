"""Defines paths and versions that the benchmarks use; no other module knows the layout on disk."""

import re
import sys
from importlib import metadata
from pathlib import Path

BENCH = Path(__file__).parent
ROOT = BENCH.parent
WORK = BENCH / ".work"
"""Ignored by git: jars, programs, data, logs, the last results as JSON."""

RESULTS = BENCH / "RESULTS.md"
RESULTS_JSON = WORK / "results.json"
PARTIAL_JSON = WORK / "partial.json"
"""The results of a quick or partial run: they must not replace full results."""
CLUSTER_JSON = WORK / "cluster.json"
CLUSTER_PARTIAL_JSON = WORK / "cluster-partial.json"
"""The same two for the cluster."""

SECURITY_JSON = WORK / "security.json"
SECURITY_PARTIAL_JSON = WORK / "security-partial.json"
"""And for the rows about security."""

LOGS = WORK / "logs"

POM = BENCH / "kafka" / "pom.xml"
KAFKA_LOGGING = BENCH / "kafka" / "log4j2.properties"
JARS = WORK / "jars"

NATIVE = BENCH / "native"
LOAD = WORK / "load"
WIRE = WORK / "wire"
GROUP = WORK / "group"
TRANSFORM = WORK / "transform"
GAP = WORK / "gap"

BARNABAS = Path(sys.executable).parent / "barnabas"


def kafka_version(pom: str) -> str:
    """The Kafka version in the pom."""
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", pom)
    assert found, "pom.xml names no kafka.version"
    return found[1]


KAFKA_VERSION = kafka_version(POM.read_text())


def package_version() -> str:
    """The version of the installed barnabas package."""
    return metadata.version("barnabas")
