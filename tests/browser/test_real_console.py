"""The page with a real console and a real broker: what the made-up console promises holds."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing import Broker
from tests.support.browsers import Open
from tests.support.console.running_console import RunningConsole

HOSTILE = "<img src=x onerror=window.hacked=1>"
INTERVAL_S = 0.5
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def real_console(broker: Broker) -> Iterator[RunningConsole]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("orders", num_partitions=3)])["orders"].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(300):
        producer.produce("orders", key=f"c-{number}", value=f'{{"number": {number}}}')
    producer.produce("orders", key=HOSTILE, value=HOSTILE, headers={HOSTILE: HOSTILE})
    assert producer.flush(PATIENCE_S) == 0
    properties = {"bootstrap.servers": broker.bootstrap}
    with Watcher(WatchSettings(properties=properties, interval_s=INTERVAL_S)) as watcher:
        watcher.wait(PATIENCE_S)
        with RunningConsole(watcher, bootstrap=broker.bootstrap) as running:
            yield running


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "healthy"),
        ("/topics", "orders"),
        ("/topics/orders/partitions", "Broker "),
        ("/topics/orders/settings", "retention.ms"),
        ("/groups", "There are no groups yet"),
        ("/brokers", "Metadata quorum"),
        ("/heatmap", "Largest"),
        ("/plans", "No replica moves now"),
        ("/transactions", "No transaction is open"),
        ("/alerts", "Nothing is wrong|Disk"),  # the disk of the machine may be nearly full
    ],
)
def test_each_page_understands_the_real_answers(
    real_console: RunningConsole, open_page: Open, path: str, text: str
) -> None:
    page = open_page(real_console.base + path)
    page.get_by_text(re.compile(text)).first.wait_for(state="attached")
    assert page.get_by_role("alert").count() == 0


def test_a_topic_lives_its_life(real_console: RunningConsole, open_page: Open) -> None:
    page = open_page(f"{real_console.base}/topics")
    press(page, "Create a topic")
    page.get_by_label("Name").fill("parcels")
    page.get_by_label("Replication factor").fill("1")
    press(page, "Preview")
    press(page, "Create")
    page.wait_for_url("**/topics/parcels/partitions")
    press(page, "Produce")
    page.get_by_label("Key", exact=True).fill("p-1")
    page.get_by_label("Value", exact=True).fill('{"weight": 12}')
    page.get_by_role("textbox", name="Headers").fill("trace=abc")
    page.locator("dialog").get_by_role("button", name="Produce").click()
    page.get_by_text(re.compile(r"Written to parcels-\d at offset 0")).wait_for()
    page.get_by_role("link", name="Messages").last.click()
    page.get_by_role("link", name=re.compile('"weight": ?12')).click()
    detail = page.get_by_role("complementary")
    detail.get_by_text("trace").wait_for()
    press(page, "Replay")
    page.locator("dialog").get_by_role("button", name="Replay").click()
    page.get_by_text(re.compile(r"Written to parcels-\d at offset 1")).wait_for()
    page.goto(f"{real_console.base}/topics/parcels/partitions")
    press(page, "Delete")
    page.get_by_label("Type the name of the topic").fill("parcels")
    press(page, "Delete the topic")
    page.wait_for_url("**/topics")


def test_searches_filter_and_a_tail_follows(
    real_console: RunningConsole, broker: Broker, open_page: Open
) -> None:
    page = open_page(f"{real_console.base}/messages?topic=orders&key=c-77")
    page.get_by_role("link", name=re.compile('"number": ?77')).wait_for()
    page.goto(f"{real_console.base}/messages?topic=orders&cel=value.number == 78")
    page.get_by_role("link", name=re.compile('"number": ?78')).wait_for()
    with page.expect_response("**/api/messages/tail?*"):
        page.goto(f"{real_console.base}/messages?topic=orders&live=1")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce("orders", value="fresh from the tail")
    assert producer.flush(PATIENCE_S) == 0
    page.get_by_role("link", name="fresh from the tail").wait_for()


def test_hostile_records_are_text(real_console: RunningConsole, open_page: Open) -> None:
    page = open_page(f"{real_console.base}/messages?topic=orders&text=onerror")
    page.get_by_role("link", name=HOSTILE).click()
    page.get_by_role("complementary").get_by_text("Headers").wait_for()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, aside img").count() == 0
