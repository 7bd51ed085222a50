"""Tests tasks, transactions and deliveries against a real broker, without Spark."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from barnabas.model.errors import ErrorCode
from barnabas.spark.exactly_once.attempts import Attempt, Written
from barnabas.spark.exactly_once.committing import Committer
from barnabas.spark.query_errors import ReplayError
from barnabas.spark.sink import sink_cluster
from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.librdkafka_sink import write_by_librdkafka
from barnabas.spark.sink.record_encoding import RowError
from barnabas.spark.sink.sink_cluster import cluster_at
from barnabas.spark.sink.sink_columns import Columns
from barnabas.spark.sink.sink_options import SinkOptions, parse_options
from barnabas.spark.sink.sink_transactions import end
from barnabas.spark.sink.writers import Task
from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from barnabas.wire.pipeline import Pipeline
from barnabas.wire.wire_failures import LinkError
from tests.support.loads.topic_reading import committed_records, create_topic

VALUE_ALONE = Columns(0, None, None, None, None, None)
KEYED = Columns(0, 1, None, None, None, None)
PATIENCE_MS = 20_000


class Elsewhere(NamedTuple):
    """A broker that the test did not start, such as Apache Kafka."""

    bootstrap: str


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker | Elsewhere]:
    """A Barnabas broker, or the one that BARNABAS_SINK_BROKER names."""
    if elsewhere := os.environ.get("BARNABAS_SINK_BROKER"):
        yield Elsewhere(elsewhere)
        return
    with Broker() as running:
        yield running


def options_for(bootstrap: str, **more: str) -> SinkOptions:
    return parse_options({"kafka.bootstrap.servers": bootstrap, **more})


def rows(*values: str) -> "pa.RecordBatch":
    return pa.record_batch({"value": pa.array(values), "key": pa.array(values)})


def write(options: SinkOptions, content: Any, version: int = 0, task: str = "task") -> Written:
    return Task(options, VALUE_ALONE, attempt_of(task)).write(iter(content), version)


def attempt_of(job: str) -> Attempt:
    return Attempt(job=job, run="first run")


def commit_batch(options: SinkOptions, written: Written, batch: int) -> None:
    cluster = cluster_at(options.bootstrap, options.client_id)
    Committer(cluster, options, [written]).commit(batch)


def commit(options: SinkOptions, written: Written) -> int:
    assert written.ticket is not None
    cluster = cluster_at(options.bootstrap, options.client_id)
    return end(cluster, written.ticket, PATIENCE_MS, commit=True)


def values(broker: Broker | BrokerSubprocess, topic: str) -> list[str]:
    return sorted(
        (each.value or b"").decode() for each in committed_records(broker.bootstrap, topic)
    )


def test_rows_are_seen_once_the_driver_commits(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "commits", 3)
    options = options_for(broker.bootstrap, topic=topic)
    written = write(options, [rows("a", "b"), rows(), rows("c")], task="commits")
    assert (written.rows, written.was_written_before) == (3, False)
    assert commit(options, written) == ErrorCode.NONE
    assert values(broker, topic) == ["a", "b", "c"]


def test_a_task_without_rows_begins_nothing(broker: Broker) -> None:
    written = write(options_for(broker.bootstrap, topic="nowhere"), [rows()])
    assert written == Written(0, 0, attempt=attempt_of("task"))


def test_a_batch_that_was_committed_is_not_written_again(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "again")
    options = options_for(broker.bootstrap, topic=topic)
    commit_batch(options, write(options, [rows("batch 4")], 4, "again"), 4)
    replayed = write(options, [rows("batch 4")], 4, "again")
    assert replayed.was_written_before
    commit_batch(options, replayed, 4)
    with pytest.raises(ReplayError, match="restored from a backup"):
        write(options, [rows("batch 3")], 3, "again")
    commit_batch(options, write(options, [rows("batch 5")], 5, "again"), 5)
    assert values(broker, topic) == ["batch 4", "batch 5"]


def test_an_attempt_that_was_not_committed_leaves_nothing(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "attempts")
    options = options_for(broker.bootstrap, topic=topic)
    write(options, [rows("first attempt")], task="attempts")
    commit(options, write(options, [rows("second attempt")], task="attempts"))
    assert values(broker, topic) == ["second attempt"]


def test_an_attempt_that_was_overtaken_can_neither_write_nor_commit(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "zombies")
    options = options_for(broker.bootstrap, topic=topic)
    newer: list[Written] = []

    def overtaken() -> Iterator["pa.RecordBatch"]:
        yield rows("zombie")
        newer.append(write(options, [rows("newer")], task="zombies"))
        yield rows("zombie again")

    with pytest.raises(DeliveryError, match="newer attempt"):
        write(options, overtaken(), task="zombies")
    assert commit(options, newer[0]) == ErrorCode.NONE

    idle = write(options, [rows("idle")], 1, task="zombies")
    last = write(options, [rows("last")], 1, task="zombies")
    assert commit(options, idle) in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    assert commit(options, last) == ErrorCode.NONE
    assert values(broker, topic) == ["last", "newer"]


def test_rows_that_fail_on_the_way_abort_the_transaction_at_once(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "upstream")
    options = options_for(broker.bootstrap, topic=topic)

    def failing() -> Iterator["pa.RecordBatch"]:
        yield rows("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(options, failing(), task="upstream")
    # A read_committed consumer reaches the end: no transaction is open.
    assert values(broker, topic) == []
    commit(options, write(options, [rows("whole")], task="upstream"))
    assert values(broker, topic) == ["whole"]


def test_keys_land_where_librdkafka_with_javas_partitioner_puts_them(broker: Broker) -> None:
    ours = create_topic(broker.bootstrap, "ours", 7)
    theirs = create_topic(broker.bootstrap, "theirs", 7)
    content = rows(*(f"key-{number}" for number in range(500)))
    options = options_for(broker.bootstrap, topic=ours, exactlyOnce="false")
    Task(options, KEYED, attempt_of("unused")).write(iter([content]), 0)
    other = options_for(broker.bootstrap, topic=theirs, exactlyOnce="false")
    assert write_by_librdkafka(iter([content]), other, KEYED) == 500
    places = [
        {each.key: each.partition for each in committed_records(broker.bootstrap, topic)}
        for topic in (ours, theirs)
    ]
    assert places[0] == places[1]
    assert len(places[0]) == 500


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_at_least_once_with_every_kind_of_ack(broker: Broker, acks: str) -> None:
    topic = create_topic(broker.bootstrap, f"acks-{acks}")
    more = {"topic": topic, "exactlyOnce": "false", "kafka.acks": acks}
    options = options_for(broker.bootstrap, **more)
    assert write(options, [rows("a"), rows("b")]).ticket is None
    last = {**more, "kafka.acks": "all"}
    write(options_for(broker.bootstrap, **last), [rows("c")])
    assert values(broker, topic)[-1] == "c"
    assert set(values(broker, topic)) >= {"c"}


def test_many_batches_a_partition_arrive_in_order(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "order", 2)
    options = options_for(broker.bootstrap, topic=topic, **{"kafka.batch.size": "300"})
    content = rows(*(f"{number:05}" for number in range(2000)))
    commit(options, Task(options, KEYED, attempt_of("order")).write(iter([content]), 0))
    found = committed_records(broker.bootstrap, topic)
    assert len(found) == 2000
    for partition in (0, 1):
        seen = [each.value for each in found if each.partition == partition]
        assert seen == sorted(seen, key=lambda value: value or b"")
        assert seen


def test_a_row_that_the_topic_does_not_take_says_what_to_change(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "small", max_message_bytes="1000")
    options = options_for(broker.bootstrap, topic=topic)
    with pytest.raises(DeliveryError, match=r"max\.message\.bytes"):
        write(options, [rows("x" * 5000)], task="small")
    commit(options, write(options, [rows("fits")], task="small"))
    assert values(broker, topic) == ["fits"]


def test_a_partition_that_does_not_exist(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "two", 2)
    batch = pa.record_batch({"value": pa.array(["v"]), "partition": pa.array([2], pa.int32())})
    options = options_for(broker.bootstrap, topic=topic)
    task = Task(options, Columns(0, None, None, None, 1, None), attempt_of("two"))
    with pytest.raises(RowError, match="partitions 0 to 1"):
        task.write(iter([batch]), 0)


def test_a_transaction_longer_than_the_broker_allows(broker: Broker) -> None:
    more = {"topic": "t", "kafka.transaction.timeout.ms": "999999999"}
    with pytest.raises(DeliveryError, match=r"transaction\.max\.timeout\.ms"):
        write(options_for(broker.bootstrap, **more), [rows("v")])


def test_no_broker_at_all_says_so() -> None:
    options = options_for("127.0.0.1:1", topic="t", **{"kafka.delivery.timeout.ms": "1"})
    with pytest.raises(LinkError, match=r"kafka\.bootstrap\.servers"):
        write(options, [rows("v")])


def test_a_task_that_begins_while_the_broker_is_down_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than it waits for a topic to appear: a restart may take longer."""
    monkeypatch.setattr(sink_cluster, "TOPIC_PATIENCE_S", 1.0)
    looks: list[str] = []
    find = sink_cluster.Cluster._any

    def watched(cluster: sink_cluster.Cluster) -> Pipeline:
        looks.append("a look")
        return find(cluster)

    monkeypatch.setattr(sink_cluster.Cluster, "_any", watched)
    with BrokerSubprocess(tmp_path) as broker, ThreadPoolExecutor(1) as pool:
        topic = create_topic(broker.bootstrap, "down")
        broker.kill()
        options = options_for(broker.bootstrap, topic=topic)
        writing = pool.submit(write, options, [rows("v")], 0, "down")
        eventually(lambda: len(looks) > 7)
        assert not writing.done()
        broker.start()
        commit_batch(options, writing.result(60), 0)
        assert values(broker, topic) == ["v"]


def test_a_broker_that_is_killed_on_the_way(tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path) as broker:
        topic = create_topic(broker.bootstrap, "killed", 2)
        options = options_for(broker.bootstrap, topic=topic, **{"kafka.batch.size": "2000"})

        def interrupted() -> Iterator["pa.RecordBatch"]:
            for number in range(12):
                if number % 4 == 2:
                    broker.restart()
                yield rows(*(f"{number}-{each}" for each in range(200)))

        written = write(options, interrupted(), task="killed")
        broker.restart()
        assert commit(options, written) == ErrorCode.NONE
        # The response to a commit may be lost; repeating the request changes nothing.
        assert commit(options, written) == ErrorCode.NONE
        found = [each.value for each in committed_records(broker.bootstrap, topic)]
        assert len(found) == len(set(found)) == 2400


def test_replaced_tickets_of_another_epoch_end_nothing(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "epochs")
    options = options_for(broker.bootstrap, topic=topic)
    written = write(options, [rows("v")], task="epochs")
    assert written.ticket is not None
    wrong = Written(1, 1, replace(written.ticket, producer_epoch=written.ticket.producer_epoch + 1))
    assert commit(options, wrong) != ErrorCode.NONE
    assert commit(options, written) == ErrorCode.NONE
