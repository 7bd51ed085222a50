"""Paths and versions that the benchmarks use; no other module knows the layout on disk."""

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
"""Of a run that was quick or left something out: it must not pass for a full one."""
CLUSTER_JSON = WORK / "cluster.json"
CLUSTER_PARTIAL_JSON = WORK / "cluster-partial.json"
"""The same two for the cluster."""

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
    """The version that the pom asks for."""
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", pom)
    assert found, "pom.xml names no kafka.version"
    return found[1]


KAFKA_VERSION = kafka_version(POM.read_text())


def package_version() -> str:
    """The version of the installed barnabas package."""
    return metadata.version("barnabas")
