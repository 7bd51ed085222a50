"""Checks groups of real members by their own logs: a small scenario for each Python client.

The scenarios run in parallel, as they mostly wait; `tests/chaos/test_members.py` has the long ones.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.loads.load import create_topic
from tests.support.members.membership import Findings
from tests.support.members.membership_crowd import Crowd, Plan
from tests.support.members.membership_scenarios import PARTITIONS, small_stories

pytest.importorskip("kafka")
pytest.importorskip("aiokafka")

pytestmark = pytest.mark.compat

CASES = {
    "confluent-classic": {
        "client": "confluent",
        "protocol": "classic",
        "assignor": "cooperative-sticky",
    },
    "confluent-consumer": {"client": "confluent", "protocol": "consumer", "assignor": "uniform"},
    "kafka-python-classic": {"client": "kafka_python", "protocol": "classic", "assignor": "range"},
    "aiokafka-classic": {"client": "aiokafka", "protocol": "classic", "assignor": "roundrobin"},
}
RECORDS = 200


@pytest.fixture(scope="module")
def outcomes(
    group_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Findings]]]:
    """Run all scenarios at once."""
    new_folder = partial(tmp_path_factory.mktemp, numbered=False)
    with small_stories(CASES, group_bootstrap, new_folder) as futures:
        yield futures


@pytest.mark.parametrize("case", CASES)
def test_members_share_a_topic(outcomes: dict[str, Future[Findings]], case: str) -> None:
    findings = outcomes[case].result()
    assert findings.violations == []
    assert findings.distinct > 300
    assert findings.tenures > 2 * PARTITIONS


def test_owners_of_the_same_partition_are_detected(group_bootstrap: str, tmp_path: Path) -> None:
    """Two groups that look like one: each member assumes that it owns everything."""
    name = f"strangers-{uuid4().hex[:8]}"
    plan = Plan(
        bootstrap=group_bootstrap,
        topic=name,
        partitions=2,
        group=name,
        client="confluent",
    )
    create_topic(group_bootstrap, name, 2)
    with Crowd(tmp_path, plan) as crowd:
        crowd.host("m0")
        crowd.wait_processed(RECORDS)
        crowd.host("m1", group=f"{name}-other")
        crowd.wait_seen_by_all(RECORDS)
        violations = " ".join(crowd.finish().violations)
    assert "overlapping" in violations
    assert "repeated" in violations
