"""Groups of Apache Kafka's own consumers, held to their own logs: a small story each protocol."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.support.members.membership import Findings
from tests.support.members.membership_crowd import Plan
from tests.support.members.membership_scenarios import small

pytestmark = pytest.mark.compat

CASES = {
    "java-classic": ("classic", "cooperative-sticky"),
    "java-consumer": ("consumer", "range"),
}
PARTITIONS = 6
SESSION_MS = 3000


@pytest.fixture(scope="module")
def outcomes(
    group_bootstrap: str, members_jvm: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Findings]]]:
    """Tell both stories at once."""
    with ThreadPoolExecutor(len(CASES)) as pool:
        futures = {}
        for name, (protocol, assignor) in CASES.items():
            folder = tmp_path_factory.mktemp(f"{name}-{uuid4().hex[:8]}", numbered=False)
            plan = Plan(
                bootstrap=group_bootstrap,
                topic=folder.name,
                partitions=PARTITIONS,
                group=folder.name,
                client="java",
                command=members_jvm,
                protocol=protocol,
                assignor=assignor,
                session_ms=SESSION_MS,
            )
            futures[name] = pool.submit(small, folder, plan)
        yield futures


@pytest.mark.parametrize("case", CASES)
def test_members_share_a_topic(outcomes: dict[str, Future[Findings]], case: str) -> None:
    findings = outcomes[case].result()
    assert findings.violations == []
    assert findings.distinct > 300
    assert findings.generations > 3
