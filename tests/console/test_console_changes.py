"""Tests the changes that a page can make, with a broker; a dry run of each changes nothing."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.monitor.watcher import Watcher
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.console.running_console import RunningConsole

PATIENCE_S = 30.0

NewTopicOf = Callable[..., str]


def partitions(admin: AdminClient, topic: str) -> int:
    found = admin.list_topics(timeout=PATIENCE_S).topics.get(topic)
    return 0 if found is None else len(found.partitions)


def configs(console: RunningConsole, topic: str) -> dict[str, Any]:
    items = console.get(f"/api/topics/{quote(topic, safe='')}/configs")["items"]
    return {item["name"]: item for item in items}


def last_audit(console: RunningConsole) -> dict[str, Any]:
    assert console.settings.audit is not None
    line: dict[str, Any] = json.loads(console.settings.audit.read_text().splitlines()[-1])
    return line


def test_a_topic_is_created_after_a_dry_run(console: RunningConsole, admin: AdminClient) -> None:
    name = f"made-{uuid4().hex}"
    body = {"name": name, "partitions": 3, "configs": {"retention.ms": 60000}, "dry_run": True}
    assert console.post("/api/topics", body) == {"created": False}
    assert last_audit(console)["result"] == "planned"
    assert partitions(admin, name) == 0
    assert console.post("/api/topics", {**body, "dry_run": False}) == {"created": True}
    assert last_audit(console)["action"] == "topic.create"
    assert partitions(admin, name) == 3
    assert configs(console, name)["retention.ms"]["value"] == "60000"
    again = console.post("/api/topics", {**body, "dry_run": False}, 409)
    assert again["code"] == "TOPIC_ALREADY_EXISTS"
    assert last_audit(console)["result"] == "failed"


@pytest.mark.parametrize("name", ["", "..", "a/b", "<script>", "x" * 250, "☃"])
def test_a_name_that_kafka_does_not_allow_is_refused(console: RunningConsole, name: str) -> None:
    found = console.post("/api/topics", {"name": name, "partitions": 1}, 400)
    assert found["code"] == "INVALID_TOPIC_EXCEPTION"


def test_a_topic_of_249_characters_works_everywhere(
    console: RunningConsole, new_topic: NewTopicOf, watcher: Watcher
) -> None:
    name = new_topic(name=uuid4().hex + "n" * 217)
    assert len(name) == 249
    console.post("/api/messages", {"topic": name, "value": "x", "partition": 0})
    assert configs(console, name)["retention.ms"]["is_default"] is True
    eventually(lambda: watcher.state is not None and name in watcher.state.topics, PATIENCE_S)
    assert console.get(f"/api/topics/{name}")["partitions"] == 1


def test_configs_are_changed_and_reset_with_the_values_before(
    console: RunningConsole, new_topic: NewTopicOf
) -> None:
    topic = new_topic(**{"retention.ms": "1000"})
    path = f"/api/topics/{topic}/configs"
    body = {"set": {"cleanup.policy": "compact"}, "delete": ["retention.ms"]}
    dry = console.post(path, {**body, "dry_run": True})
    assert configs(console, topic)["retention.ms"]["value"] == "1000"
    assert console.post(path, body) == dry
    changes = {each["name"]: (each["before"], each["after"]) for each in dry["changes"]}
    assert changes["cleanup.policy"] == ("delete", "compact")
    assert changes["retention.ms"][0] == "1000"
    found = configs(console, topic)
    assert found["retention.ms"]["value"] == changes["retention.ms"][1]
    policy = found["cleanup.policy"]
    assert (policy["value"], policy["default"], policy["is_default"]) == (
        "compact", "delete", False,
    )  # fmt: skip
    assert policy["documentation"]
    first = console.get(path)["items"][0]
    assert first["name"] == "cleanup.policy"  # those that differ come first


def test_a_wrong_config_is_refused_with_the_brokers_sentence(
    console: RunningConsole, new_topic: NewTopicOf
) -> None:
    path = f"/api/topics/{new_topic()}/configs"
    found = console.post(path, {"set": {"retention.ms": "soon"}, "dry_run": True}, 400)
    assert found["code"] == "INVALID_CONFIG"
    assert "retention.ms" in found["error"]
    console.post(path, {}, 400)


def test_partitions_are_added_but_never_removed(
    console: RunningConsole, new_topic: NewTopicOf, admin: AdminClient
) -> None:
    topic = new_topic(2)
    path = f"/api/topics/{topic}/partitions"
    assert console.post(path, {"count": 4, "dry_run": True}) == {"before": 2, "after": 4}
    assert partitions(admin, topic) == 2
    console.post(path, {"count": 4})
    assert partitions(admin, topic) == 4
    console.post(path, {"count": 3}, 400)
    console.post(path, {"count": "5"}, 400)


def test_a_trim_says_how_many_records_it_deletes(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    for number in range(10):
        producer.produce(topic, str(number))
    producer.flush(PATIENCE_S)
    path = f"/api/topics/{topic}/trim"
    body = {"before": {"0": 4}, "dry_run": True}
    assert console.post(path, body) == {"deleted": {"0": 4}}
    assert console.post(path, {"before": {"0": 4}}) == {"deleted": {"0": 4}}
    assert console.post(path, {"before": {"0": 4}}) == {"deleted": {"0": 0}}
    console.get("/api/messages/one", 404, topic=topic, partition=0, offset=3)
    console.post(path, {"before": {"0": 99}}, 400)
    console.post(path, {"before": {"7": 1}}, 400)
    console.post(path, {"before": {}}, 400)


def test_a_topic_is_deleted_only_with_its_name_repeated(
    console: RunningConsole, new_topic: NewTopicOf, admin: AdminClient
) -> None:
    topic = new_topic()
    console.send("DELETE", f"/api/topics/{topic}", {"confirm": "other"}, 400)
    console.send("DELETE", f"/api/topics/{topic}", {}, 400)
    assert partitions(admin, topic) == 1
    console.send("DELETE", f"/api/topics/{topic}", {"confirm": topic})
    eventually(lambda: not partitions(admin, topic), PATIENCE_S)
    found = console.send("DELETE", f"/api/topics/{topic}", {"confirm": topic}, 404)
    assert found["code"] == "UNKNOWN_TOPIC_OR_PARTITION"


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result().topic_partitions
    return {each.partition: each.offset for each in found}


@pytest.fixture
def read_topic(new_topic: NewTopicOf, producer: Producer) -> str:
    topic = new_topic(2)
    for number in range(20):
        producer.produce(topic, str(number), partition=number % 2)
    producer.flush(PATIENCE_S)
    return topic


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("beginning", 0),
        ("end", 10),
        (3, 3),
        ("3", 3),
        ("+2", 7),
        ("-2", 3),
        ("-1h", 0),
        ("2001-01-01T00:00:00", 0),
    ],
)
def test_a_group_is_reset_after_a_dry_run(
    console: RunningConsole, admin: AdminClient, read_topic: str, to: str | int, expected: int
) -> None:
    group = f"g/{uuid4().hex}"
    place(admin, group, read_topic, 5)
    path = f"/api/groups/{quote(group, safe='')}/reset"
    body = {"to": to, "topics": [f"{read_topic}:1"], "dry_run": True}
    dry = console.post(path, body)
    assert dry["applied"] is False
    (change,) = dry["changes"]
    assert (change["before"], change["after"], change["change"]) == (5, expected, expected - 5)
    assert committed(admin, group) == {0: 5, 1: 5}
    assert console.post(path, {**body, "dry_run": False})["applied"] is True
    assert committed(admin, group) == {0: 5, 1: expected}
    assert last_audit(console)["target"] == group


def place(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    wanted = [TopicPartition(topic, each, offset) for each in (0, 1)]
    asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
    asked[group].result()


def test_a_wrong_target_is_refused(console: RunningConsole) -> None:
    for to in ("soon", "-", None, True, "--5"):
        found = console.post("/api/groups/any/reset", {"to": to, "dry_run": True}, 400)
        assert "2026-" in found["error"] or '"to" must be' in found["error"]


def test_a_group_with_members_is_not_reset_but_its_dry_run_is_shown(
    console: RunningConsole, broker: Broker, read_topic: str
) -> None:
    group = f"g-{uuid4().hex}"
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "client.id": "busy-client",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([read_topic])
        eventually(lambda: consumer.poll(0.1) is not None, PATIENCE_S)
        path = f"/api/groups/{group}/reset"
        body = {"to": "end", "topics": [read_topic]}
        found = console.post(path, {**body, "dry_run": False}, 409)
        assert "busy-client" in found["error"]
        assert console.post(path, {**body, "dry_run": True})["warnings"]
        console.send("DELETE", f"/api/groups/{group}", {"confirm": group}, 409)
    finally:
        consumer.close()


def test_a_group_is_deleted_with_its_name_repeated(
    console: RunningConsole, admin: AdminClient, read_topic: str
) -> None:
    group = f"g-{uuid4().hex}"
    place(admin, group, read_topic, 1)
    console.send("DELETE", f"/api/groups/{group}", {"confirm": "g"}, 400)
    console.send("DELETE", f"/api/groups/{group}", {"confirm": group})
    assert committed(admin, group) == {}
    console.send("DELETE", f"/api/groups/{group}", {"confirm": group}, 404)


def test_a_balanced_cluster_has_an_empty_plan(console: RunningConsole, read_topic: str) -> None:
    plan = console.post("/api/plans/balance", {"scope": [read_topic], "dry_run": True})
    assert (plan["changes"], plan["moves"], plan["bytes_to_move"]) == ([], 0, 0)
    (totals,) = plan["brokers"].values()
    assert totals["replicas_before"] == totals["replicas_after"] >= 2
    assert console.get("/api/plans/running") == {"moving": []}
    assert console.post("/api/plans/cancel", {"scope": [read_topic]}) == {"cancelled": []}


def test_a_plan_with_unknown_brokers_or_partitions_is_refused(
    console: RunningConsole, read_topic: str
) -> None:
    for changes in ({f"{read_topic}-0": [1, 99]}, {f"{read_topic}-9": [1]}, {"ghost-0": [1]}, {}):
        body = {"changes": changes, "dry_run": True}
        assert console.post("/api/plans/reassign", body, 400)["code"] == "bad_input"
    for wrong in ({f"{read_topic}-0": "1"}, {f"{read_topic}-0": [True]}, {"nodash": [1]}):
        assert console.post("/api/plans/reassign", {"changes": wrong}, 400)["error"]


def test_an_election_lists_what_would_change(console: RunningConsole, read_topic: str) -> None:
    dry = console.post("/api/plans/elect", {"scope": [read_topic], "dry_run": True})
    assert dry == {"changes": [], "elected": [], "refused": []}
    done = console.post("/api/plans/elect", {"scope": [read_topic], "dry_run": False})
    assert (done["changes"], done["refused"]) == ([], [])


def test_open_transactions_are_listed(
    console: RunningConsole, new_topic: NewTopicOf, broker: Broker
) -> None:
    topic = new_topic()
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_S)
    rows = console.get("/api/transactions", search=topic)["items"]
    assert [(row["state"], row["topics"], row["hanging"]) for row in rows] == [
        ("Ongoing", [topic], False)
    ]
    producer.abort_transaction(PATIENCE_S)
    # The marker of the end is written after its answer.
    eventually(lambda: console.get("/api/transactions", search=topic)["items"] == [], PATIENCE_S)


def test_a_change_makes_the_watcher_look_at_once(console: RunningConsole, watcher: Watcher) -> None:
    before = watcher.collections
    name = f"soon-{uuid4().hex}"
    console.post("/api/topics", {"name": name, "partitions": 1})
    eventually(lambda: watcher.collections > before, PATIENCE_S)
    eventually(lambda: console.get("/api/topics", search=name)["total"] == 1, PATIENCE_S)


def test_pages_are_told_of_each_collection(console: RunningConsole) -> None:
    with console.events("/api/events") as events:
        first, second = next(events), next(events)
    assert (first.name, second.name) == ("snapshot", "snapshot")
    assert second["taken_ms"] > first["taken_ms"]


def test_a_broker_has_its_configs(console: RunningConsole) -> None:
    (row,) = console.get("/api/brokers")["items"]
    found = console.get(f"/api/brokers/{row['id']}")
    assert found["configs_failure"] is None
    assert {each["name"] for each in found["configs"]} > {"log.retention.ms", "num.partitions"}
    assert found["quorum"]["role"] == "leader"
