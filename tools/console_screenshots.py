"""Writes docs/images/console-*.png from a console on three brokers under load.

make screenshots            a real cluster, about three minutes
make screenshots ARGS=--mock   the made-up cluster of web/mock, seconds
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Page, ViewportSize, sync_playwright

from barnabas.testing import ClusterProcesses
from barnabas.testing.free_ports import free_port
from tests.support.browsers import CHROMIUM, NO_BROWSER
from web.mock.server import MockConsole, Settings

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BYTES_MAX = 150_000
HTTP_LISTEN = "BARNABAS_OBSERVABILITY_HTTP_LISTEN"
INTERVAL = "2s"
LOAD_S = 100
TOPICS = {"orders": 6, "payments": 6, "clicks": 12, "shipments": 3, "audit": 1, "sessions": 6}
RATES = {
    "orders": 900,
    "payments": 500,
    "clicks": 2_500,
    "shipments": 150,
    "audit": 20,
    "sessions": 700,
}
GROUPS = {
    "billing": "orders",
    "fraud-check": "payments",
    "analytics": "clicks",
    "mailer": "shipments",
}
SLOW_GROUP, STOPPED_GROUP = "analytics", "mailer"
Shot = tuple[str, str, Literal["light", "dark"], int]
"""A name, a path, a theme and a width in pixels."""
SHOTS: tuple[Shot, ...] = (
    ("overview", "/", "light", 1440),
    ("overview-dark", "/", "dark", 1440),
    ("group", "/groups/analytics", "light", 1440),
    ("messages-dark", "/messages?topic=orders", "dark", 1440),
    ("heatmap", "/heatmap", "light", 1440),
    ("phone", "/", "light", 390),
)


def order(chance: random.Random, number: int) -> dict[str, object]:
    """Return what a shop would write."""
    return {
        "order_id": number,
        "customer": f"c-{chance.randrange(20_000):05d}",
        "country": chance.choice(("DE", "FR", "JP", "BR", "US", "KE")),
        "total": round(chance.lognormvariate(3.6, 0.9), 2),
        "currency": "EUR",
        "express": chance.random() < 0.2,
    }


class Load:
    """Producers and groups on threads."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._began_s = time.monotonic()
        jobs = [(self._produce, topic) for topic in TOPICS] + [
            (self._consume, name) for name in GROUPS
        ]
        self._threads = [threading.Thread(target=job, args=(name,)) for job, name in jobs]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop all threads."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _produce(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        chance, number = random.Random(topic), 0
        while not self._stopping.wait(0.1):
            for _ in range(int(RATES[topic] / 10 * chance.uniform(0.6, 1.4))):
                number += 1
                value = order(chance, number)
                producer.produce(topic, key=str(value["customer"]), value=json.dumps(value))
            producer.poll(0)
        producer.flush(10)

    def _consume(self, group: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "client.id": f"{group}-1",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1_000,
            }
        )
        consumer.subscribe([GROUPS[group]])
        while not self._stopping.is_set():
            if group == STOPPED_GROUP and time.monotonic() - self._began_s > LOAD_S / 3:
                break
            consumer.consume(100 if group == SLOW_GROUP else 2_000, timeout=0.2)
        consumer.close()


@contextmanager
def loaded_cluster() -> Iterator[tuple[str, str]]:
    """Start three brokers with load; yield their bootstrap servers and addresses of metrics."""
    metrics = {number: f"127.0.0.1:{free_port()}" for number in (1, 2, 3)}
    variables = {number: {HTTP_LISTEN: address} for number, address in metrics.items()}
    with (
        tempfile.TemporaryDirectory() as folder,
        ClusterProcesses(Path(folder), environments=variables) as cluster,
    ):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        wanted = [NewTopic(name, count, replication_factor=3) for name, count in TOPICS.items()]
        for future in admin.create_topics(wanted).values():
            future.result()
        load = Load(cluster.bootstrap)
        try:
            yield cluster.bootstrap, ",".join(f"{n}={each}" for n, each in metrics.items())
        finally:
            load.stop()


@contextmanager
def real_console(bootstrap: str, metrics: str) -> Iterator[str]:
    """Start a console, and yield its URL."""
    command = [sys.executable, "-m", "barnabas.cli", "console", "--bootstrap", bootstrap]
    options = ["--listen", "127.0.0.1:0", "--name", "demo", "--interval", INTERVAL, "--json"]
    options += ["--metrics", metrics]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"]).rstrip("/")
        finally:
            process.terminate()


@contextmanager
def shown_console(*, mock: bool) -> Iterator[str]:
    """Yield the URL of a console with something to show."""
    with ExitStack() as stack:
        if mock:
            console = MockConsole(Settings()).start()
            stack.callback(console.close)
            yield console.url
            return
        url = stack.enter_context(real_console(*stack.enter_context(loaded_cluster())))
        time.sleep(LOAD_S)  # The charts need a history.
        yield url


def shoot(page: Page, url: str, name: str, path: str) -> Path:
    """Write one picture."""
    page.goto(url + path)
    page.locator("h1").wait_for()
    page.wait_for_load_state("load")
    page.locator(".table, .chart, .heat, .planner").first.wait_for()
    if path == "/plans":
        page.get_by_role("button", name="Show the plan").click()
        page.get_by_text("The plan").or_(page.get_by_text("Nothing has to move")).first.wait_for()
    if path.startswith("/messages"):
        page.locator("tbody a.row-link").first.click()
        page.get_by_role("complementary").locator("pre").first.wait_for()
    page.mouse.move(0, 0)
    file = IMAGES / f"console-{name}.png"
    page.screenshot(path=file)
    return file


def main() -> None:
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mock", action="store_true", help="show the made-up cluster of web/mock")
    mock = parser.parse_args().mock
    if CHROMIUM is None:
        sys.exit(NO_BROWSER)
    with shown_console(mock=mock) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, path, theme, width in SHOTS:
            size = ViewportSize(width=width, height=840 if width > 600 else 844)
            context = browser.new_context(
                color_scheme=theme, viewport=size, reduced_motion="reduce"
            )
            file = shoot(context.new_page(), url, name, path)
            context.close()
            kilobytes = file.stat().st_size // 1000
            print(f"{file.relative_to(IMAGES.parents[1])}: {kilobytes} KB")
            if file.stat().st_size > BYTES_MAX:
                sys.exit(f"{file.name} is larger than {BYTES_MAX // 1000} KB; show less in it")
        browser.close()


if __name__ == "__main__":
    main()
