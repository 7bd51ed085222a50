"""The console on Apache Kafka: each page, and a topic's life from its creation to its end."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.waiting import eventually
from tests.support.browsers import Open
from tests.support.console.running_console import RunningConsole
from tests.support.loads.kafka_tools import MissingToolError, fetch_jars
from tests.support.loads.plain_kafka import BROKERS, plain_kafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
POM = ROOT / "tests" / "compat" / "java" / "pom.xml"
JARS = ROOT / "build" / "java"
INTERVAL_S = 0.5
PATIENCE_S = 60.0
PARTITIONS, RECORDS, READ = 3, 600, 150


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers with a topic, a group that has stopped, and an open transaction."""
    try:
        jars = fetch_jars(POM, JARS)
    except MissingToolError as error:
        pytest.skip(str(error))
    with plain_kafka(tmp_path_factory.mktemp("kafka"), jars) as servers:
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for future in admin.create_topics(
            [NewTopic("orders", PARTITIONS, BROKERS), NewTopic("payments", 1, 1)]
        ).values():
            future.result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": servers, "compression.type": "zstd"})
        for number in range(RECORDS):
            producer.produce(
                "orders", f'{{"number": {number}}}', f"c-{number}", number % PARTITIONS
            )
        assert producer.flush(PATIENCE_S) == 0
        for group, protocol in (("billing", "classic"), ("next-gen", "consumer")):
            read(servers, group, protocol)
        yield servers


def read(servers: str, group: str, protocol: str) -> None:
    """Join a group, commit some offsets of each partition, and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    while not consumer.consume(1, 1):
        pass
    each = READ // PARTITIONS
    offsets = [TopicPartition("orders", number, each) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def console(bootstrap: str) -> Iterator[RunningConsole]:
    properties = {"bootstrap.servers": bootstrap}
    with Watcher(WatchSettings(properties=properties, interval_s=INTERVAL_S)) as watcher:
        watcher.wait(PATIENCE_S)
        with RunningConsole(watcher, bootstrap=bootstrap) as running:
            eventually(lambda: running.get("/api/groups")["total"] == 2, PATIENCE_S)
            yield running


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "healthy"),
        ("/topics", "orders"),
        ("/topics/orders", '"number": ?599'),
        ("/topics/orders/partitions", "Broker 2"),
        ("/topics/orders/groups", "next-gen"),
        ("/topics/orders/settings", "min.insync.replicas"),
        ("/groups", "billing"),
        ("/groups/billing", "orders-2"),
        ("/groups/next-gen", "consumer"),
        ("/groups/billing/members", "No member is in this group"),
        ("/messages?topic=orders", "c-599"),
        ("/brokers", "Metadata quorum"),
        ("/brokers/1", "Slow requests are unknown"),
        ("/brokers/2?show=settings", "log.dirs"),
        ("/heatmap", "Largest"),
        ("/plans", "No replica moves now"),
        ("/transactions", "No transaction is open"),
        ("/telemetry", "knows no lake"),
        ("/streams", "No Spark query has reported yet"),
        ("/alerts", "Nothing is wrong|Disk|Group"),  # the disk of the machine may be nearly full
    ],
)
def test_each_page_understands_kafka(
    console: RunningConsole, open_page: Open, path: str, text: str
) -> None:
    page = open_page(console.base + path)
    page.get_by_text(re.compile(text, re.IGNORECASE)).first.wait_for(state="attached")
    assert page.get_by_role("alert").count() == 0


def test_what_kafka_does_not_tell_is_unknown_and_not_invented(console: RunningConsole) -> None:
    overview = console.get("/api/overview")
    assert overview["troubles"] == []
    assert overview["counts"]["brokers_up"] == BROKERS
    assert overview["feature_level"] is None
    assert overview["throughput"]["produce_p99_s"] is None
    assert console.get("/api/brokers/1")["slow_requests"] is None
    groups = {each["name"]: each for each in console.get("/api/groups")["items"]}
    assert groups["billing"]["lag"] == groups["next-gen"]["lag"] == RECORDS - READ
    assert groups["next-gen"]["type"] == "consumer"


def test_a_topic_lives_its_life(console: RunningConsole, open_page: Open) -> None:
    page = open_page(f"{console.base}/topics")
    press(page, "Create a topic")
    page.get_by_label("Name").fill("parcels")
    page.get_by_label("Partitions").fill("2")
    page.get_by_label("Replication factor").fill("2")
    page.get_by_label("Settings").fill("retention.ms=86400000")
    press(page, "Preview")
    press(page, "Create")
    page.wait_for_url("**/topics/parcels/partitions")
    press(page, "Produce")
    page.get_by_label("Key", exact=True).fill("p-1")
    page.get_by_label("Value", exact=True).fill('{"weight": 12}')
    page.locator("dialog").get_by_role("button", name="Produce").click()
    page.get_by_text(re.compile(r"Written to parcels-\d at offset 0")).wait_for()
    page.get_by_role("link", name="Settings").click()
    page.get_by_text("86400000").first.wait_for()
    press(page, "retention.ms")
    page.get_by_label("Value").fill("1000000")
    press(page, "Preview")
    page.get_by_text("86400000 → 1000000").wait_for()
    press(page, "Change")
    page.get_by_text("retention.ms of parcels is changed").wait_for()
    press(page, "Add partitions")
    press(page, "Preview")
    page.locator("dialog").get_by_role("button", name="Add partitions").click()
    page.get_by_text("parcels has 3 partitions").wait_for()
    press(page, "Delete records")
    press(page, "Preview")
    press(page, "Delete the records")
    page.get_by_text("1 record deleted from parcels").wait_for()
    press(page, "Delete")
    page.get_by_label("Type the name of the topic").fill("parcels")
    press(page, "Delete the topic")
    page.wait_for_url("**/topics")
    eventually(lambda: console.get("/api/topics")["total"] == 2, PATIENCE_S)


def test_offsets_are_reset_after_a_dry_run(console: RunningConsole, open_page: Open) -> None:
    for group in ("billing", "next-gen"):
        page = open_page(f"{console.base}/groups/{group}")
        press(page, "Reset offsets")
        press(page, "Preview")
        page.get_by_role("columnheader", name="Before").wait_for()
        found = console.get(f"/api/groups/{group}")
        assert found["lag"] == RECORDS - READ, "a dry run changes nothing"
        page.locator("dialog").get_by_role("button", name="Reset offsets").click()
        page.get_by_text(re.compile(r"offsets? of .+ changed")).wait_for()
        eventually(lambda: _lag(console, group) == RECORDS, PATIENCE_S)  # noqa: B023


def _lag(console: RunningConsole, group: str) -> int | None:
    lag: int | None = console.get(f"/api/groups/{group}")["lag"]
    return lag


def test_a_tail_follows_and_searches_filter(
    console: RunningConsole, bootstrap: str, open_page: Open
) -> None:
    page = open_page(f"{console.base}/messages?topic=orders&cel=value.number == 78")
    page.get_by_role("link", name=re.compile('"number": ?78')).wait_for()
    with page.expect_response("**/api/messages/tail?*"):
        page.goto(f"{console.base}/messages?topic=payments&live=1")
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce("payments", "fresh from the tail")
    assert producer.flush(PATIENCE_S) == 0
    page.get_by_role("link", name="fresh from the tail").wait_for()


def test_an_open_transaction_is_listed(
    console: RunningConsole, bootstrap: str, open_page: Open
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "loads"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("payments", "not yet")
    producer.flush(PATIENCE_S)
    page = open_page(f"{console.base}/transactions")
    page.get_by_text("loads").wait_for()
    producer.abort_transaction(PATIENCE_S)


def test_replicas_move(console: RunningConsole, open_page: Open) -> None:
    (before,) = console.get("/api/topics/payments")["partition_list"]
    (old,) = before["replicas"]
    new = BROKERS + 1 - old
    page = open_page(f"{console.base}/plans?kind=reassign")
    page.get_by_label("Partitions and their replicas").fill(f"payments-0: {new}")
    press(page, "Show the plan")
    page.get_by_role("img", name=re.compile(f"from broker {old} to broker {new}")).wait_for()
    press(page, "Run the plan")
    page.locator("dialog").get_by_role("button", name="Begin to move").click()
    eventually(
        lambda: console.get("/api/topics/payments")["partition_list"][0]["replicas"] == [new],
        PATIENCE_S,
    )


def test_cluster_status_understands_kafka(bootstrap: str) -> None:
    """It asks for fields that DescribeCluster has from version 2 on."""
    words = ("cluster", "status", "--json", "--bootstrap", bootstrap)
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [each["state"] for each in found["brokers"]] == ["up"] * BROKERS
    assert found["controller"] == 1
    assert found["feature_level"] is None
