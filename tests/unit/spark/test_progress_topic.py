"""Tests that reports reach their topic, and that a topic that fails holds up nothing."""

from collections.abc import Callable

from confluent_kafka.admin import AdminClient, ConfigResource

from barnabas.client import Consumer, TopicPartition
from barnabas.monitor.stream_progress import StreamProgress, StreamTable
from barnabas.spark.helpers.progress_topic import Mailbox, ProgressTopic, create_compacted
from barnabas.testing.broker import Broker

NOWHERE = "127.0.0.1:1"


def row(name: str, lag: int = 0) -> StreamProgress:
    return StreamProgress(
        name=name, query_id="q", run_id="r", state="running", since_ms=1, lag=lag, updated_ms=2
    )


def table_of(bootstrap: str, topic: str, is_complete: Callable[[StreamTable], bool]) -> StreamTable:
    table = StreamTable()
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)], "beginning")
        while not is_complete(table):
            message = consumer.poll(timeout_s=10.0)
            assert message is not None, table.rows
            table.apply(message.key, message.value)
    return table


def policy_of(bootstrap: str, topic: str) -> object:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (answer,) = admin.describe_configs([resource]).values()
    return answer.result()["cleanup.policy"].value


def test_reports_are_in_a_compacted_topic() -> None:
    with Broker() as broker:
        progress = ProgressTopic({"bootstrap.servers": broker.bootstrap}, "streams")
        for lag in range(100):
            progress.send(row("silver", lag))
        progress.send(row("gold"))
        progress.close()
        create_compacted({"bootstrap.servers": broker.bootstrap}, "streams", 10.0)  # it is there
        table = table_of(broker.bootstrap, "streams", lambda found: len(found.rows) == 2)
        policy = policy_of(broker.bootstrap, "streams")
    assert [(each.name, each.lag) for each in table.rows] == [("gold", 0), ("silver", 99)]
    assert policy == "compact"
    assert progress.undelivered == 0


def test_without_a_broker_closing_ends_and_counts_the_reports() -> None:
    client = {"bootstrap.servers": NOWHERE}
    progress = ProgressTopic(client, "streams", request_timeout_s=0.1)
    progress.send(row("silver"))
    progress.close(timeout_s=60.0)
    assert progress.undelivered == 1


def test_a_newer_report_replaces_one_that_waits() -> None:
    mailbox = Mailbox()
    for lag in range(5):
        mailbox.put(row("silver", lag))
    assert mailbox.take() == [row("silver", 4)]
    assert mailbox.dropped == 0


def test_a_full_mailbox_drops_the_oldest_and_counts_it() -> None:
    mailbox = Mailbox(queries_max=2)
    for name in ("a", "b", "a", "c"):
        mailbox.put(row(name))
    assert [each.name for each in mailbox.take()] == ["a", "c"]
    assert mailbox.dropped == 1


def test_returned_reports_do_not_replace_newer_ones() -> None:
    mailbox = Mailbox(queries_max=2)
    mailbox.put(row("silver", 2))
    mailbox.put_back([row("silver", 1), row("gold"), row("bronze")])
    assert mailbox.take() == [row("silver", 2), row("gold")]
    assert mailbox.dropped == 1


def test_a_closed_mailbox_gives_the_rest_and_then_nothing() -> None:
    mailbox = Mailbox()
    mailbox.put(row("silver"))
    mailbox.close()
    assert (mailbox.take(), mailbox.take()) == ([row("silver")], [])
