"""Tests the command-line tools of Apache Kafka, through their main classes, in one JVM."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_choice import brokers, data_of
from tests.support.loads.kafka_tools import Done, Jvm, tools

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"
LINES = [f"key{n}:value {n}" for n in range(50)]


@pytest.fixture(scope="module")
def jvm(broker: Broker, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, broker.bootstrap) as running:
        yield running


@pytest.fixture
def filled(jvm: Jvm, topic: str) -> str:
    """Return a topic that the console producer has written to."""
    made = jvm.run(f"{TOOLS}.TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    assert made.output.strip() == f"Created topic {topic}."
    settings = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    text = "\n".join(LINES) + "\n"
    produced = jvm.run(f"{TOOLS}.ConsoleProducer", "--topic", topic, *settings, text=text)
    assert produced.code == 0, produced.output
    return topic


def test_the_console_consumer_reads_what_the_console_producer_wrote(jvm: Jvm, filled: str) -> None:
    done = jvm.run(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--topic", filled, "--partition", "0", "--offset", "earliest", "--max-messages", "50"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
    )
    assert [line for line in done.output.splitlines() if line.startswith("key")] == LINES
    assert "Processed a total of 50 messages" in done.output


def test_topics_are_described_and_deleted(jvm: Jvm, filled: str) -> None:
    described = jvm.run(f"{TOOLS}.TopicCommand", "--describe", "--topic", filled)
    assert f"PartitionCount: 1\tReplicationFactor: {brokers()}" in described.output
    (leader, replicas, isr) = re.findall(
        r"Leader: (\d)\tReplicas: (\S+)\tIsr: (\S+)\t", described.output
    )[0]
    assert sorted(replicas.split(",")) == [str(number + 1) for number in range(brokers())]
    assert (replicas.split(",")[0], replicas) == (leader, isr)
    grown = jvm.run(f"{TOOLS}.TopicCommand", "--alter", "--topic", filled, "--partitions", "3")
    assert grown == Done(0, "")
    assert filled in jvm.run(f"{TOOLS}.TopicCommand", "--list").output.split()
    assert jvm.run(f"{TOOLS}.TopicCommand", "--delete", "--topic", filled) == Done(0, "")
    assert filled not in jvm.run(f"{TOOLS}.TopicCommand", "--list").output.split()


def test_configs_are_altered_and_described(jvm: Jvm, filled: str) -> None:
    tool, which = "kafka.admin.ConfigCommand", ("--entity-type", "topics", "--entity-name", filled)
    altered = jvm.run(tool, "--alter", *which, "--add-config", "retention.ms=5000")
    assert altered.output.strip() == f"Completed updating config for topic {filled}."
    described = jvm.run(tool, "--describe", *which)
    assert "retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in described.output
    jvm.run(tool, "--alter", *which, "--delete-config", "retention.ms")
    assert "retention.ms" not in jvm.run(tool, "--describe", *which).output


def test_brokers_have_configs(jvm: Jvm) -> None:
    tool, which = "kafka.admin.ConfigCommand", ("--entity-type", "brokers", "--entity-name", "1")
    altered = jvm.run(tool, "--alter", *which, "--add-config", "log.retention.ms=999999")
    assert altered.output.strip() == "Completed updating config for broker 1."
    described = jvm.run(tool, "--describe", *which)
    assert "log.retention.ms=999999 sensitive=false" in described.output
    jvm.run(tool, "--alter", *which, "--delete-config", "log.retention.ms")
    assert "log.retention.ms=999999" not in jvm.run(tool, "--describe", *which, "--all").output
    every = jvm.run(tool, "--describe", "--entity-type", "brokers", "--entity-default")
    assert every.code == 0, every.output


def test_broker_configs_that_have_no_effect_are_kept(jvm: Jvm) -> None:
    tool, which = "kafka.admin.ConfigCommand", ("--entity-type", "brokers", "--entity-name", "1")
    altered = jvm.run(tool, "--alter", *which, "--add-config", "log.cleaner.threads=2")
    assert altered.output.strip() == "Completed updating config for broker 1."
    described = jvm.run(tool, "--describe", *which)
    assert "log.cleaner.threads=2 sensitive=false" in described.output
    deleted = jvm.run(tool, "--alter", *which, "--delete-config", "log.cleaner.threads")
    assert deleted.output.strip() == "Completed updating config for broker 1."
    assert "log.cleaner.threads" not in jvm.run(tool, "--describe", *which).output
    refused = jvm.run(tool, "--alter", *which, "--add-config", "node.id=2")
    assert "Cannot update these configs dynamically" in refused.output


def test_groups_have_configs(jvm: Jvm) -> None:
    tool, which = "kafka.admin.ConfigCommand", ("--entity-type", "groups", "--entity-name", "g")
    altered = jvm.run(tool, "--alter", *which, "--add-config", "share.auto.offset.reset=earliest")
    assert altered.output.strip() == "Completed updating config for group g."
    described = jvm.run(tool, "--describe", *which).output
    assert "share.auto.offset.reset=earliest sensitive=false" in described
    assert "GROUP_CONFIG:share.auto.offset.reset=earliest" in described
    every = jvm.run(tool, "--describe", "--entity-type", "groups").output
    assert "configs for group g" in every
    described = jvm.run(tool, "--describe", *which, "--all").output
    assert "share.record.lock.duration.ms=30000" in described
    refused = jvm.run(tool, "--alter", *which, "--add-config", "share.delivery.count.limit=11")
    assert "must be from 2 to 10" in refused.output
    jvm.run(tool, "--alter", *which, "--delete-config", "share.auto.offset.reset")
    assert "earliest" not in jvm.run(tool, "--describe", *which).output


def test_reassignments_are_throttled(jvm: Jvm, filled: str, tmp_path: Path) -> None:
    tool, configs = f"{TOOLS}.reassign.ReassignPartitionsCommand", "kafka.admin.ConfigCommand"
    plan = {"version": 1, "partitions": [{"topic": filled, "partition": 0, "replicas": [1]}]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    which = ("--entity-type", "brokers", "--entity-name", "1")
    rate = "follower.replication.throttled.rate"
    done = jvm.run(
        tool, "--reassignment-json-file", str(path), "--execute", "--throttle", "1000000"
    )
    assert f"Successfully started partition reassignment for {filled}-0" in done.output
    if brokers() == 1:  # nothing has to move, so nothing is throttled
        jvm.run(configs, "--alter", *which, "--add-config", f"{rate}=1000000")
    assert f"{rate}=1000000" in jvm.run(configs, "--describe", *which).output

    def over() -> bool:
        verified = jvm.run(tool, "--reassignment-json-file", str(path), "--verify")
        return f"Reassignment of partition {filled}-0 is completed." in verified.output

    assert eventually(over)
    assert rate not in jvm.run(configs, "--describe", *which).output


def test_offsets_are_got_and_records_deleted(jvm: Jvm, filled: str, tmp_path: Path) -> None:
    shell = f"{TOOLS}.GetOffsetShell"
    assert jvm.run(shell, "--topic", filled).output.strip() == f"{filled}:0:50"
    asked = {"partitions": [{"topic": filled, "partition": 0, "offset": 20}], "version": 1}
    path = tmp_path / "delete.json"
    path.write_text(json.dumps(asked))
    done = jvm.run(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(path))
    assert f"partition: {filled}-0\tlow_watermark: 20" in done.output
    earliest = jvm.run(shell, "--topic", filled, "--time", "earliest")
    assert earliest.output.strip() == f"{filled}:0:20"


def test_folders_are_described(jvm: Jvm, broker: Broker, filled: str) -> None:
    done = jvm.run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", filled)
    (line,) = [line for line in done.output.splitlines() if line.startswith("{")]
    described = json.loads(line)["brokers"]
    assert len(described) == brokers()
    for each in described:
        (folder,) = each["logDirs"]
        assert folder["logDir"] == str(data_of(broker, each["broker"]))
        assert [p["partition"] for p in folder["partitions"]] == [f"{filled}-0"]
        assert folder["partitions"][0]["size"] > 0


def test_producer_performance_is_measured(jvm: Jvm, topic: str) -> None:
    limits = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    done = jvm.run(f"{TOOLS}.ProducerPerformance", "--topic", topic, *limits)
    assert "20000 records sent" in done.output


def test_versions_are_listed(jvm: Jvm, broker: Broker) -> None:
    done = jvm.run(f"{TOOLS}.BrokerApiVersionsCommand")
    for number, address in enumerate(broker.bootstrap.split(","), 1):
        assert f"{address} (id: {number} rack: null" in done.output
    assert "Produce(0): 0 to 13" in done.output


def test_features_are_described_and_updated(jvm: Jvm) -> None:
    tool = f"{TOOLS}.FeatureCommand"
    described = jvm.run(tool, "describe").output
    features = {
        "barnabas.version": (1, 2, 2),
        "transaction.version": (0, 2, 2),
        "share.version": (0, 1, 1),
    }
    for name, (low, high, level) in features.items():
        assert re.search(
            rf"Feature: {name}\s+SupportedMinVersion: {low}\s+SupportedMaxVersion: {high}\s+"
            rf"FinalizedVersionLevel: {level}\s+Epoch: \d+",
            described,
        ), described
    again = jvm.run(tool, "upgrade", "--feature", "barnabas.version=2")
    assert "barnabas.version was upgraded to 2." in again.output
    lower = jvm.run(tool, "downgrade", "--feature", "barnabas.version=1")
    assert lower.code != 0
    assert "the level is 2 and cannot be lowered" in lower.output
    unknown = jvm.run(tool, "upgrade", "--feature", "some.version=7")
    assert "there is no such feature" in unknown.output


def test_quotas_are_set_and_described(jvm: Jvm, topic: str) -> None:
    """`kafka-configs` for users, clients and addresses."""
    tool, user = "kafka.admin.ConfigCommand", ("--entity-type", "users", "--entity-name", topic)
    both = (*user, "--entity-type", "clients", "--entity-default")
    address = ("--entity-type", "ips", "--entity-name", "203.0.113.7")
    quotas = {
        user: "producer_byte_rate=1048576.0",
        both: "request_percentage=12.5",
        address: "connection_creation_rate=5.0",
    }
    for which, quota in quotas.items():
        made = jvm.run(tool, *which, "--alter", "--add-config", quota)
        assert made.code == 0, made.output
        described = jvm.run(tool, *which, "--describe")
        assert f"are {quota}" in described.output
    everything = jvm.run(tool, "--entity-type", "users", "--entity-type", "clients", "--describe")
    assert f"Quota configs for user-principal '{topic}', the default client-id" in everything.output
    for which, quota in quotas.items():
        key = quota.partition("=")[0]
        assert jvm.run(tool, *which, "--alter", "--delete-config", key).code == 0
        assert key not in jvm.run(tool, *which, "--describe").output
    refused = jvm.run(tool, *address, "--alter", "--add-config", "producer_byte_rate=5")
    assert refused.code != 0
