"""Fetches Spark's own Kafka connector from a Maven registry, for tests that compare with it.

The preferred version is that of PySpark. Registries are late and mirrors have gaps, so older
versions that run on this Spark follow. The result names the version.
"""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.loads.kafka_tools import FETCH_TIMEOUT_S, MissingToolError

NEEDED = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
"""Dependencies that Spark does not include."""


class Versions(NamedTuple):
    """A connector, and its part that is published separately."""

    connector: str
    token_provider: str


class Connector(NamedTuple):
    """The fetched connector."""

    versions: Versions
    jars: str
    """The value of the setting spark.jars."""


def fetch_connector(pom: Path, folder: Path, spark_version: str) -> Connector:
    """Fetch the connector once; raise if no version is available."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise MissingToolError(f"{program} is not installed")
    tried = [
        Versions(spark_version, spark_version),
        Versions("4.2.0", "4.2.0"),
        Versions("4.2.0", "4.1.0-preview1"),
    ]
    for versions in tried:
        if _jars(folder / "-".join(versions)):
            return Connector(versions, _jars(folder / "-".join(versions)))
    complaint = ""
    for versions in tried:
        complaint = _fetch(pom, folder / "-".join(versions), versions)
        if not complaint:
            return Connector(versions, _jars(folder / "-".join(versions)))
    raise MissingToolError(f"Maven could not fetch Spark's connector: {complaint[:300]}")


def _fetch(pom: Path, folder: Path, versions: Versions) -> str:
    """Return the error, or an empty string on success."""
    done = subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={folder}",
            f"-Dconnector={versions.connector}",
            f"-Dtoken.provider={versions.token_provider}",
        ],
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def _jars(folder: Path) -> str:
    found = sorted(path for path in folder.glob("*.jar") if path.name.startswith(NEEDED))
    return ",".join(map(str, found)) if len(found) == len(NEEDED) else ""
