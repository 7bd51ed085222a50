"""Tests the page of Spark's queries, from the records of a topic."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from barnabas.monitor.stream_progress import StreamProgress
from barnabas.monitor.watcher import Watcher
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.console.running_console import PATIENCE_S, RunningConsole

NewTopicOf = Callable[..., str]


@pytest.fixture
def topic() -> str:
    return f"streams-{uuid4().hex}"


@pytest.fixture
def streams(broker: Broker, watcher: Watcher, topic: str) -> Iterator[RunningConsole]:
    with RunningConsole(watcher, bootstrap=broker.bootstrap, streams_topic=topic) as running:
        yield running


def report(name: str, rows_per_s: float, updated_ms: int, state: str = "running") -> StreamProgress:
    return StreamProgress(
        name=name,
        query_id="q",
        run_id="r",
        state=state,
        since_ms=1,
        rows_per_s=rows_per_s,
        sources=("orders",),
        updated_ms=updated_ms,
    )


def test_without_the_topic_there_are_no_queries(streams: RunningConsole, topic: str) -> None:
    assert streams.get("/api/streams")["items"] == []
    assert topic not in [each["name"] for each in streams.get("/api/topics", internal=1)["items"]]


def test_the_newest_record_of_each_query_is_its_row(
    streams: RunningConsole, topic: str, new_topic: NewTopicOf, producer: Producer
) -> None:
    new_topic(name=topic)
    hostile = "<script>/../x"
    sent = [report("daily", 5.0, 10), report(hostile, 1.0, 11), report("daily", 7.0, 12)]
    for each in sent:
        key, value = each.to_record()
        producer.produce(topic, key=key, value=value)
    producer.produce(topic, key=b"junk", value=b"not JSON")
    producer.flush(PATIENCE_S)
    rows = {row["name"]: row for row in streams.get("/api/streams")["items"]}
    assert rows.keys() == {"daily", hostile}
    assert (rows["daily"]["rows_per_s"], rows["daily"]["sources"]) == (7.0, ["orders"])
    assert rows["daily"]["lag"] is None
    one = streams.get("/api/streams/daily")
    assert one["history"]["times_ms"] == [10, 12]
    assert one["history"]["rows_per_s"] == [5.0, 7.0]
    assert streams.get("/api/streams/%3Cscript%3E%2F..%2Fx")["name"] == hostile
    assert streams.get("/api/streams", search="DAI")["total"] == 1
    streams.get("/api/streams/none", 404)


def test_a_record_without_a_value_removes_a_query(
    streams: RunningConsole, topic: str, new_topic: NewTopicOf, producer: Producer
) -> None:
    new_topic(name=topic)
    key, value = report("gone", 1.0, 10).to_record()
    producer.produce(topic, key=key, value=value)
    producer.flush(PATIENCE_S)
    assert streams.get("/api/streams")["total"] == 1
    producer.produce(topic, key=key, value=None)
    producer.flush(PATIENCE_S)
    eventually(lambda: streams.get("/api/streams")["total"] == 0, PATIENCE_S)
