"""Tests `barnabas telemetry dlq`, as a user types it, against a broker."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.telemetry.samples.telemetry_topics import REFUSED

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]

PATIENCE_S = 60.0


class Refused:
    """A DLQ of two partitions, and the topic of its records."""

    def __init__(self, run: Run, bootstrap: str, dlq: str, origin: str) -> None:
        self.dlq, self.origin = dlq, origin
        self._run, self._bootstrap = run, bootstrap

    def refuse(self, reason: str, value: bytes, partition: int = 0, **headers: str) -> None:
        own = {"topic": self.origin, "partition": "1", "offset": "7", "reason": reason}
        pairs = {f"dlq.{name}": text for name, text in {**own, **headers}.items() if text}
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        producer.produce(
            self.dlq,
            value,
            key=b"GPU-1",
            partition=partition,
            headers=[("source", b"dcgm"), *((k, v.encode()) for k, v in pairs.items())],
        )
        assert producer.flush(PATIENCE_S) == 0

    def listed(self, *words: str) -> Any:
        done = self._run("telemetry", "dlq", "list", "--topic", self.dlq, "--json", *words)
        return json.loads(done.stdout)

    def redrive(self, *words: str) -> Any:
        done = self._run("telemetry", "dlq", "redrive", "--topic", self.dlq, "--json", *words)
        return json.loads(done.stdout)

    def sent(self) -> list[Message]:
        """Return all records that were sent back, in order."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "reader", "log_level": 0}
        )
        try:
            found: list[Message] = []
            for number in (0, 1):
                place = TopicPartition(self.origin, number, 0)
                _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
                consumer.assign([place])
                found += consumer.consume(end, timeout=PATIENCE_S) if end else []
            return found
        finally:
            consumer.close()


@pytest.fixture
def refused(run: Run, bootstrap: str, admin: AdminClient) -> Refused:
    name = uuid4().hex
    topics = [f"dlq-{name}", f"samples-{name}"]
    made = admin.create_topics(
        [NewTopic(each, num_partitions=2, replication_factor=1) for each in topics]
    )
    for future in made.values():
        future.result()
    return Refused(run, bootstrap, *topics)


def test_list_counts_by_reason_and_shows_the_newest(refused: Refused, run: Run) -> None:
    for number in range(3):
        refused.refuse("late", b"%d" % number, number % 2)
    refused.refuse("bad_json", b"\x00{" + b"x" * 500, detail="line 1")
    found = refused.listed("--limit", "1")
    assert {each["reason"]: each["records"] for each in found["reasons"]} == {
        "late": 3,
        "bad_json": 1,
    }
    assert [each["reasons"] for each in found["records"]] == [["bad_json"]]
    only = refused.listed("--reason", "bad_json")
    assert [each["detail"] for each in only["records"]] == ["line 1"]
    assert only["records"][0]["origin"] == {"topic": refused.origin, "partition": 1, "offset": 7}
    shown = run("telemetry", "dlq", "list", "--topic", refused.dlq).stdout.decode()
    assert "late" in shown
    assert "(502 bytes)" in shown


def test_redrive_sends_the_original_bytes_back_once(refused: Refused) -> None:
    refused.refuse("late", b"first")
    large = b"\x00\xff" * 499_000
    refused.refuse("bad_json", large)
    plan = refused.redrive()
    assert (plan["executed"], plan["records"]) == (False, 2)
    assert refused.sent() == []
    assert refused.redrive("--execute")["reasons"] == {"late": 1, "bad_json": 1}
    one, two = refused.sent()
    assert (one.value(), two.value()) == (b"first", large)
    assert (one.key(), one.partition()) == (b"GPU-1", 1)
    assert one.headers() == [("source", b"dcgm"), ("dlq.redriven", b"1")]
    assert refused.redrive("--execute")["records"] == 0
    assert len(refused.sent()) == 2
    refused.refuse("late", b"second")
    assert refused.redrive("--execute")["records"] == 1
    assert [each.value() for each in refused.sent()] == [b"first", large, b"second"]


def test_a_reason_is_remembered_by_itself(refused: Refused) -> None:
    refused.refuse("bad_json", b"a")
    refused.refuse("late", b"b", partition=1)
    refused.refuse("late", b"c")
    assert refused.redrive("--reason", "late", "--execute")["reasons"] == {"late": 2}
    assert refused.redrive("--reason", "late", "--execute")["records"] == 0
    rest = refused.redrive("--execute")
    assert (rest["reasons"], rest["left"]) == ({"bad_json": 1}, {"redriven before": 2})
    assert sorted(each.value() for each in refused.sent()) == [b"a", b"b", b"c"]


def test_one_record_and_force(refused: Refused) -> None:
    for value in (b"a", b"b", b"c"):
        refused.refuse("late", value)
    assert refused.redrive("--partition", "0", "--offset", "1", "--execute")["records"] == 1
    assert [each.value() for each in refused.sent()] == [b"b"]
    assert refused.redrive("--execute")["records"] == 3
    assert refused.redrive("--partition", "0", "--offset", "1", "--execute")["records"] == 0
    assert refused.redrive("--force", "--execute")["records"] == 3
    assert refused.redrive("--execute")["records"] == 0


def test_records_that_cannot_or_should_not_go_back_are_reported(refused: Refused, run: Run) -> None:
    refused.refuse("late", b"a", topic="")
    refused.refuse("late", b"b", redriven="3")
    plan = refused.redrive()
    assert plan["left"] == {"no dlq.topic header": 1, "came back 3 times": 1}
    done = run("telemetry", "dlq", "redrive", "--topic", refused.dlq)
    assert b"1 record left: came back 3 times" in done.stderr
    assert b"--force sends again" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--offset", "1"), "--offset needs --partition"),
        (("--partition", "9"), "has no partition 9"),
    ],
)
def test_wrong_places_are_refused(
    refused: Refused, run: Run, words: tuple[str, ...], sentence: str
) -> None:
    done = run("telemetry", "dlq", "redrive", "--topic", refused.dlq, *words, code=1)
    assert sentence in done.stderr.decode()


def test_a_topic_that_is_gone_is_named(refused: Refused, run: Run) -> None:
    refused.refuse("late", b"a", topic="gone-for-good")
    done = run("telemetry", "dlq", "redrive", "--topic", refused.dlq, "--execute", code=1)
    assert b"Topic gone-for-good, where the records came from, no longer exists" in done.stderr
    absent = run("telemetry", "dlq", "list", "--topic", "no-such-dlq", code=1)
    assert b"There is no topic no-such-dlq" in absent.stderr


def test_a_report_counts_what_was_refused(
    run: Run, bootstrap: str, admin: AdminClient, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")
    from tests.support.pipelines.lake import h200, write_lake

    if REFUSED not in admin.list_topics(timeout=PATIENCE_S).topics:
        wanted = [NewTopic(REFUSED, num_partitions=1, replication_factor=1)]
        admin.create_topics(wanted)[REFUSED].result()
    reason = f"of-this-test-{uuid4().hex}"
    refused = Refused(run, bootstrap, REFUSED, "gpu-telemetry")
    refused.refuse(f"late,{reason}", b"{}")
    lake = write_lake(tmp_path, h200())
    found = json.loads(run("telemetry", "report", "--lake", str(lake), "--json").stdout)
    assert found["quality"]["refused"][reason] == 1
