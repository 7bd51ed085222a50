"""Large groups whose members leave, crash and return, checked by their own logs.

The rules, and what a log can prove, are in `tests/support/members/membership.py`.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from barnabas.testing.process import BrokerSubprocess
from tests.support.clusters.cluster_choice import brokers, cluster_of
from tests.support.loads.kafka_tools import MissingToolError, compiled, fetch_jars
from tests.support.members.membership_crowd import Plan
from tests.support.members.membership_scenarios import long

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
JAVA = ROOT / "tests" / "compat" / "java"
STEPS = int(os.environ.get("CHAOS_MEMBERS", "8"))
MEMBERS = 20
PARTITIONS = 100
SETTINGS = {
    "groups.initial_rebalance_delay": "500ms",
    "groups.consumer_heartbeat_interval": "500ms",
    "groups.consumer_session_timeout": "6s",
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The brokers of the groups: our own, or the configured one."""
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield named
        return
    folder = tmp_path_factory.mktemp("members")
    several = brokers() > 1
    members_of = (
        cluster_of(folder, SETTINGS) if several else BrokerSubprocess(folder, settings=SETTINGS)
    )
    with members_of as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def jvm() -> list[str]:
    """Return the command that runs members on Apache Kafka's own client."""
    try:
        jars = fetch_jars(JAVA / "pom.xml", ROOT / "build" / "java")
    except MissingToolError as error:
        pytest.skip(str(error))
    return compiled(JAVA / "Members.java", jars, ROOT / "build" / "classes")


Record = Callable[[str, object], None]


def check(
    folder: Path, plan: Plan, record: Record, *, members: int = MEMBERS, hosted: int = 1
) -> None:
    findings, figures = long(folder, plan, STEPS, members=members, hosted=hosted, steps=STEPS)
    assert findings.violations == []
    assert findings.distinct > 100 * STEPS
    assert figures["kills"] > 0
    for name, figure in figures.items():
        record(name, figure)


def plan_of(bootstrap: str, client: str, protocol: str, assignor: str) -> Plan:
    name = f"{client}-{protocol}-{assignor}-{uuid4().hex[:8]}"
    return Plan(
        bootstrap=bootstrap,
        topic=name,
        group=name,
        partitions=PARTITIONS,
        client=client,
        protocol=protocol,
        assignor=assignor,
    )


@pytest.mark.parametrize(
    ("client", "protocol", "assignor", "static"),
    [
        ("confluent", "classic", "range", False),
        ("confluent", "classic", "cooperative-sticky", False),
        ("confluent", "consumer", "uniform", False),
        ("kafka_python", "classic", "cooperative-sticky", False),
        ("aiokafka", "classic", "sticky", False),
        ("confluent", "classic", "range", True),
        ("confluent", "consumer", "range", True),
    ],
)
def test_large_groups_of_python_clients(
    bootstrap: str,
    tmp_path: Path,
    client: str,
    protocol: str,
    assignor: str,
    static: bool,
    record_property: Record,
) -> None:
    plan = replace(plan_of(bootstrap, client, protocol, assignor), static=static)
    check(tmp_path, plan, record_property)


@pytest.mark.parametrize(
    ("protocol", "assignor"),
    [("classic", "cooperative-sticky"), ("classic", "sticky"), ("consumer", "range")],
)
def test_large_groups_of_java_clients(
    bootstrap: str,
    jvm: list[str],
    tmp_path: Path,
    protocol: str,
    assignor: str,
    record_property: Record,
) -> None:
    plan = replace(plan_of(bootstrap, "java", protocol, assignor), command=jvm)
    check(tmp_path, plan, record_property, hosted=5)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("members", "partitions"), [(1, 1), (1, 100), (8, 3), (5, 17)])
def test_groups_of_every_shape(
    bootstrap: str,
    tmp_path: Path,
    members: int,
    partitions: int,
    protocol: str,
    record_property: Record,
) -> None:
    plan = plan_of(bootstrap, "confluent", protocol, "range")
    check(tmp_path, replace(plan, partitions=partitions), record_property, members=members)
