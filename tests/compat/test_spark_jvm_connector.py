"""Tests Spark's own Kafka connector, `format("kafka")`: `spark_dialogues.py` runs its dialogues.

They take minutes, and run with `make test-spark`.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.testing.broker import Broker
from tests.support.loads.kafka_tools import MissingToolError
from tests.support.pipelines.spark_connector import Connector, fetch_connector

pytestmark = [pytest.mark.compat, pytest.mark.slow]

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "spark-connector"
QUICK = ["batches", "restarts", "patterns", "times", "committed"]
LONG = ["grown", "real-time"]
LIMIT_S = 280


@pytest.fixture(scope="module")
def connector(record_testsuite_property: Callable[[str, object], None]) -> Connector:
    """Return the connector, downloaded once, or say why the tests cannot run.

    Registries lag behind PySpark, so the results name the version of the connector.
    """
    pyspark = pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")
    pom = HERE / "java" / "spark-connector.xml"
    try:
        found = fetch_connector(pom, BUILD, pyspark.__version__)
    except MissingToolError as error:
        pytest.skip(str(error))
    record_testsuite_property("connector", found.versions.connector)
    return found


def outcomes_of(broker: Broker, connector: Connector, names: list[str]) -> dict[str, str]:
    """Return "pass" or the error of each dialogue."""
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "spark_dialogues.py"),
            broker.bootstrap,
            connector.jars,
            *names,
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    return {row[1]: "pass" if row[0] == "pass" else row[-1] for row in rows}


@pytest.fixture(scope="module")
def quick(broker: Broker, connector: Connector) -> dict[str, str]:
    return outcomes_of(broker, connector, QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_dialogue(quick: dict[str, str], name: str) -> None:
    assert quick.get(name) == "pass"


@pytest.mark.parametrize("name", LONG)
def test_long_dialogue(broker: Broker, connector: Connector, name: str) -> None:
    assert outcomes_of(broker, connector, [name]) == {name: "pass"}
