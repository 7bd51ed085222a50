"""Tests Apache Kafka's own consumer and admin client with groups: `java/Groups.java` in one JVM."""

from pathlib import Path

import pytest

from tests.support.loads.kafka_tools import java_outcomes

pytestmark = pytest.mark.compat

GROUPS = Path(__file__).parent / "java" / "Groups.java"
BOTH = (
    *("resume", "auto-commit", "reset-latest", "reset-none", "reset-by-duration", "note", "pause"),
    *("by-hand", "pattern", "static", "describe", "offsets", "delete"),
)
SCENARIOS = [f"{protocol}-{name}" for protocol in ("classic", "consumer") for name in BOTH]
SCENARIOS += ["consumer-server-pattern", "consumer-upgrade", "classic-remove-members"]


@pytest.fixture(scope="module")
def outcomes(group_bootstrap: str, jars: str) -> dict[str, str]:
    """Return "pass" or the error of each dialogue."""
    return java_outcomes(jars, GROUPS, group_bootstrap)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_dialogue(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes.get(scenario) == "pass"


def test_no_dialogue_is_left_out(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(SCENARIOS)
