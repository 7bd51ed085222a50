"""Starts the two brokers with settings that make their responses comparable."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.config.keys import BY_PATH
from barnabas.model.ids import TopicId
from barnabas.model.share_state import SharePartitionKey
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from barnabas.testing.process import BrokerSubprocess
from bench.brokers import Kafka, free_port
from bench.places import LOGS, WORK
from bench.prepare import MissingError, fetch_jars, need
from bench.process import Process
from bench.running import wait_ready
from tools.compat_diff.sides import Side, error_codes
from tools.compat_diff.steps import Ask

KAFKA_ALSO = """\
group.initial.rebalance.delay.ms=0
controller.quorum.append.linger.ms=5
group.consumer.assignment.interval.ms=0
group.consumer.assignor.offload.enable=false
group.share.assignment.interval.ms=0
group.share.assignor.offload.enable=false
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
BARNABAS_SETTINGS = {
    "broker.node_id": 1,
    "groups.initial_rebalance_delay": "0s",
    "groups.consumer_heartbeat_interval": "5s",
    "groups.heartbeat_wait": "0s",
    "storage.flush": "interval",
}
"""Kafka's defaults without delays; a setting that no longer exists is left out."""
NOT_SET = ("log.retention", "log.segment", "log.initial", "log.flush", "num.", "socket.")
WARM_UP_S = 60.0
WARM_UP_NAMES = [f"warm-up-{number}" for number in range(400)]
KEY = SharePartitionKey("warm-up", TopicId(bytes([7] * 16)), 0)
NOT_READY = {14, 15, 16}

__all__ = ["Address", "MissingError", "running_barnabas", "running_kafka", "warm_up"]

Address = tuple[str, int]


@contextmanager
def running_kafka() -> Iterator[Address]:
    """Start Apache Kafka on a fresh folder; end it afterwards."""
    need("java", "apt-get install -y openjdk-17-jre-headless")
    WORK.mkdir(exist_ok=True)
    fetch_jars()
    port, kafka = free_port(), Kafka()
    with tempfile.TemporaryDirectory(prefix="compat-diff-", dir=WORK) as folder:
        data = Path(folder) / "kafka"
        kafka.prepare(data, port)
        properties = data / "server.properties"
        properties.write_text(compared_properties(properties.read_text()))
        with Process(kafka.command(data, port), LOGS / "compat-diff-kafka.log") as process:
            wait_ready(process, port)
            yield "127.0.0.1", port


def compared_properties(text: str) -> str:
    """Return Kafka's settings without those that repeat its defaults or speed up a benchmark."""
    kept = [line for line in text.splitlines() if not line.startswith(NOT_SET)]
    return "\n".join([*kept, KAFKA_ALSO])


def compared_settings() -> dict[str, object]:
    """Return the settings that Barnabas has."""
    known = {".".join(path) for path in BY_PATH}
    return {key: value for key, value in BARNABAS_SETTINGS.items() if key in known}


@contextmanager
def running_barnabas() -> Iterator[Address]:
    """Start `barnabas serve` on a fresh folder; end it afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="compat-diff-") as folder,
        BrokerSubprocess(folder, settings=compared_settings()) as broker,
    ):
        yield broker.address


def warm_up(address: Address) -> None:
    """Make a broker create its internal topics and load all coordinators."""
    side = Side(address)
    side.ask(Ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["warm-up"]), 4))
    side.ask(Ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["warm-up"]), 4))
    share = FindCoordinatorRequest(key_type=2, coordinator_keys=[KEY.coordinator_key])
    side.ask(Ask(share, 6))
    numbered = [PartitionData(partition=number) for number in range(len(WARM_UP_NAMES))]
    topics = [ReadStateSummaryData(topic_id=KEY.topic_id, partitions=numbered)]
    summaries = ReadShareGroupStateSummaryRequest(group_id=KEY.group_id, topics=topics)
    questions = (
        Ask(summaries, 0),
        Ask(DescribeGroupsRequest(groups=WARM_UP_NAMES), 4),
        Ask(DescribeTransactionsRequest(transactional_ids=WARM_UP_NAMES), 0),
        Ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4),
    )
    deadline = time.monotonic() + WARM_UP_S
    for question in questions:
        while True:
            answer = side.ask(question).message
            if answer is not None and not NOT_READY.intersection(error_codes(answer)):
                break
            if time.monotonic() > deadline:
                raise MissingError(
                    f"the broker at {address} takes too long to load its coordinators"
                )
            time.sleep(0.2)
    side.close()
