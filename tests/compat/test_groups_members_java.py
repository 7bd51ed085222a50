"""Checks groups of Apache Kafka's own consumers by their logs: a small scenario per protocol."""

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from tests.support.members.membership import Findings
from tests.support.members.membership_scenarios import small_stories

pytestmark = pytest.mark.compat

CASES = {
    "java-classic": {"protocol": "classic", "assignor": "cooperative-sticky"},
    "java-consumer": {"protocol": "consumer", "assignor": "range"},
}


@pytest.fixture(scope="module")
def outcomes(
    group_bootstrap: str, members_jvm: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Findings]]]:
    """Run both scenarios at once."""
    java = {"client": "java", "command": members_jvm}
    cases = {name: {**choices, **java} for name, choices in CASES.items()}
    new_folder = partial(tmp_path_factory.mktemp, numbered=False)
    with small_stories(cases, group_bootstrap, new_folder) as futures:
        yield futures


@pytest.mark.parametrize("case", CASES)
def test_members_share_a_topic(outcomes: dict[str, Future[Findings]], case: str) -> None:
    findings = outcomes[case].result()
    assert findings.violations == []
    assert findings.distinct > 300
    assert findings.generations > 3
