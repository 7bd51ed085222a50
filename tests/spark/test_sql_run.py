"""Tests `barnabas sql run` as a process: watched by `status`, killed, restarted, stopped."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from barnabas.spark.sql.run_status import StatusError, read_status
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.loads.topic_reading import committed_records, create_topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_S = 240.0
SHOP = """
CREATE SOURCE numbers (n BIGINT NOT NULL) FROM TOPIC numbers;
CREATE STREAM squares AS SELECT n, n * n AS square FROM numbers;
"""


def produce(broker: Broker, numbers: range) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for n in numbers:
        producer.produce("numbers", json.dumps({"n": n}))
    assert producer.flush(PATIENCE_S) == 0


def sql(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "barnabas.cli", "sql", *arguments]


class Shop:
    """A file of statements, which a test can run repeatedly."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.file = folder / "shop.sql"
        self.state = folder / "shop.state"
        self.file.write_text(SHOP)

    def start(self) -> subprocess.Popen[bytes]:
        options = ["--master", "local[2]", "--driver-memory", "1g", "--trigger", "100ms"]
        return subprocess.Popen(
            sql(str(self.file), "--bootstrap", self.broker.bootstrap, "--every", "0.2s", *options),
            stdout=subprocess.DEVNULL,
        )

    def status(self) -> dict[str, dict[str, Any]]:
        command = sql("status", "--state", str(self.state), "--json")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {}
        return {each["name"]: each for each in json.loads(done.stdout)["streams"]}

    def is_caught_up(self, rows: int) -> bool:
        """Read the file only: a process for each look would slow the run down."""
        try:
            streams = {each.name: each for each in read_status(self.state).streams}
        except StatusError:
            return False
        return "squares" in streams and streams["squares"].rows >= rows


def test_a_run_is_watched_killed_and_continues(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "numbers", 2)
    shop = Shop(broker, tmp_path)
    produce(broker, range(100))
    process = shop.start()
    try:
        eventually(lambda: shop.is_caught_up(100), PATIENCE_S)
        running = shop.status()
        assert running["squares"]["lag"] == 0
        assert running["squares"]["state"] == running["numbers_dead_letters"]["state"] == "running"
        second = subprocess.run(
            sql("run", str(shop.file), "--bootstrap", broker.bootstrap),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Another run holds" in second.stderr
        produce(broker, range(100, 200))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        assert shop.status()["squares"]["state"] == "killed"

        produce(broker, range(200, 300))
        process = shop.start()
        eventually(lambda: len(committed_records(broker.bootstrap, "squares")) >= 300, PATIENCE_S)
        eventually(lambda: shop.is_caught_up(1), PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()

    ended = shop.status()["squares"]
    assert (ended["state"], ended["lag"]) == ("stopped", 0)
    found = [
        json.loads(each.value or b"") for each in committed_records(broker.bootstrap, "squares")
    ]
    assert sorted(each["n"] for each in found) == list(range(300))
