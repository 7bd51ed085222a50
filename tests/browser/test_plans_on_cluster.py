"""Plans that move replicas on a real cluster: the picture, the dry run, the moves, their end."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing import ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.browsers import Open
from tests.support.clusters.cluster_choice import PATIENT
from tests.support.console.running_console import RunningConsole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKERS = 4
FIRST = [1, 2, 3]
PARTITIONS = 6
RECORDS, RECORD_BYTES = 3_000, 4_000
SLOW_BYTES, FAST_BYTES = 500_000, 1_000_000_000
SETTINGS = {**PATIENT, "replication.fetch_size": "256KiB"}
"""Small fetches, so that a slow move has many steps."""
PATIENCE_S = 60.0
PATIENCE_MS = 1_000 * PATIENCE_S
INTERVAL_S = 0.5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """Four brokers; all replicas of the only topic are on the first three, all leaders on one."""
    folder = tmp_path_factory.mktemp("cluster")
    with ClusterProcesses(folder, brokers=BROKERS, settings=SETTINGS) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        topic = NewTopic("orders", PARTITIONS, replica_assignment=[FIRST] * PARTITIONS)
        admin.create_topics([topic])["orders"].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": running.bootstrap, "log_level": 0})
        for number in range(RECORDS):
            producer.produce("orders", bytes(RECORD_BYTES), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0
        yield running


@pytest.fixture(scope="module")
def console(cluster: ClusterProcesses) -> Iterator[RunningConsole]:
    properties = {"bootstrap.servers": cluster.bootstrap}
    with Watcher(WatchSettings(properties=properties, interval_s=INTERVAL_S)) as watcher:
        watcher.wait(PATIENCE_S)
        with RunningConsole(watcher, bootstrap=cluster.bootstrap) as running:
            yield running


def limit_moves(cluster: ClusterProcesses, bytes_per_s: int) -> None:
    """Set how fast each broker copies replicas that it gets by a plan."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(1, BROKERS + 1):  # librdkafka takes one broker a request
        entry = ConfigEntry(
            "follower.replication.throttled.rate",
            str(bytes_per_s),
            incremental_operation=AlterConfigOpType.SET,
        )
        changed = ConfigResource(ResourceType.BROKER, str(number), incremental_configs=[entry])
        admin.incremental_alter_configs([changed])[changed].result(PATIENCE_S)


def partitions(console: RunningConsole) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = console.get("/api/topics/orders")["partition_list"]
    return found


def replicas(console: RunningConsole) -> list[list[int]]:
    return [each["replicas"] for each in partitions(console)]


def bytes_left(console: RunningConsole) -> int:
    moving = console.get("/api/plans/running")["moving"]
    return sum(each["bytes_left"] or 0 for each in moving)


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def run_plan(page: Any, submit: str = "Begin to move") -> None:
    press(page, "Run the plan")
    page.locator("dialog").get_by_role("button", name=submit).click()
    page.get_by_text(re.compile(r"partitions? begins? to move")).wait_for()


def test_a_balance_is_a_picture_then_moves_then_an_even_cluster(
    cluster: ClusterProcesses, console: RunningConsole, open_page: Open
) -> None:
    limit_moves(cluster, SLOW_BYTES)
    page = open_page(f"{console.base}/plans")
    page.get_by_text("No replica moves now").wait_for()
    press(page, "Show the plan")
    page.get_by_role(
        "img", name=re.compile(r"replicas? \(.+ [KM]B\) from broker \d to broker 4")
    ).wait_for()
    page.get_by_role("row", name=re.compile("^4 0 → ")).wait_for()
    assert replicas(console) == [FIRST] * PARTITIONS, "a plan that is only shown moves nothing"
    run_plan(page)
    page.get_by_role("heading", name="Moving now").wait_for()
    left = bytes_left(console)
    eventually(lambda: bytes_left(console) < left, PATIENCE_S)
    limit_moves(cluster, FAST_BYTES)
    page.get_by_text("No replica moves now").wait_for(timeout=PATIENCE_MS)
    held = eventually(lambda: _held_when_in_sync(console), PATIENCE_S)
    assert held is not None
    assert max(held.values()) - min(held.values()) <= 1, held


def _held_when_in_sync(console: RunningConsole) -> dict[int, int] | None:
    """Return how many replicas each broker has, when all are in sync."""
    found = partitions(console)
    if any(sorted(each["in_sync"]) != sorted(each["replicas"]) for each in found):
        return None
    placed = [broker for each in found for broker in each["replicas"]]
    return {broker: placed.count(broker) for broker in range(1, BROKERS + 1)}


def test_leaders_are_elected_after_a_plan(console: RunningConsole, open_page: Open) -> None:
    page = open_page(f"{console.base}/plans?kind=elect")
    press(page, "Show the plan")
    found = page.get_by_text("Nothing has to move").or_(page.get_by_role("button", name="Elect"))
    found.first.wait_for()
    if page.get_by_text("Nothing has to move").count() == 0:
        press(page, "Elect")
        page.locator("dialog").get_by_role("button", name="Elect").click()
    eventually(
        lambda: all(each["leader"] == each["replicas"][0] for each in partitions(console)),
        PATIENCE_S,
    )


def test_a_named_placement_is_reached(console: RunningConsole, open_page: Open) -> None:
    page = open_page(f"{console.base}/plans?kind=reassign")
    page.get_by_label("Partitions and their replicas").fill("orders-0: 4, 3, 2\norders-1: 3, 1")
    page.get_by_text("2 understood").wait_for()
    press(page, "Show the plan")
    run_plan(page)
    eventually(lambda: replicas(console)[:2] == [[4, 3, 2], [3, 1]], PATIENCE_S)
    page.get_by_text("No replica moves now").wait_for(timeout=PATIENCE_MS)


def test_moves_are_cancelled(
    cluster: ClusterProcesses, console: RunningConsole, open_page: Open
) -> None:
    before = replicas(console)[2]
    (other,) = set(range(1, BROKERS + 1)) - set(before)
    limit_moves(cluster, SLOW_BYTES)
    page = open_page(f"{console.base}/plans?kind=reassign")
    page.get_by_label("Partitions and their replicas").fill(f"orders-2: {other}")
    press(page, "Show the plan")
    run_plan(page)
    press(page, "Cancel all moves")
    page.locator("dialog").get_by_role("button", name="Cancel all moves").click()
    page.get_by_text("No replica moves now").wait_for()
    eventually(lambda: replicas(console)[2] == before, PATIENCE_S)
    limit_moves(cluster, FAST_BYTES)


def test_a_plan_that_cannot_be_is_refused_with_the_reason(
    console: RunningConsole, open_page: Open
) -> None:
    page = open_page(f"{console.base}/plans?kind=reassign")
    field = page.get_by_label("Partitions and their replicas")
    field.fill("orders-0 1, 2")
    page.get_by_text("0 understood").wait_for()
    assert page.get_by_role("button", name="Show the plan").is_disabled()
    field.fill("orders-0: 1, 9")
    press(page, "Show the plan")
    page.get_by_role("alert").get_by_text("9").wait_for()
