"""Tests Apache Kafka's own client: `java/Drive.java` runs every dialogue in one JVM."""

from pathlib import Path

import pytest

from barnabas.testing.broker import Broker
from tests.support.loads.kafka_tools import java_outcomes

pytestmark = pytest.mark.compat

DRIVE = Path(__file__).parent / "java" / "Drive.java"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SCENARIOS = [f"records-{codec}-{acks}" for codec in CODECS for acks in ("0", "1", "all")]
SCENARIOS += ["idempotent", "on-demand", "read-committed", "append-time", "made-again"]
SCENARIOS += ["topics", "configs", "offsets", "cluster", "refusals"]


@pytest.fixture(scope="module")
def outcomes(broker: Broker, jars: str) -> dict[str, str]:
    """Return "pass" or the error of each dialogue."""
    return java_outcomes(jars, DRIVE, broker.bootstrap)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_dialogue(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes.get(scenario) == "pass"


def test_no_dialogue_is_left_out(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(SCENARIOS)
