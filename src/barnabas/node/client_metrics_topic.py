"""Writes the metrics that clients push to a topic, as they came.

The key of a record is a JSON object about the client and the push; the value is what the client
sent: metrics of OpenTelemetry's protocol, compressed as the key says. `barnabas exporter` decodes
them. The topic keeps them for an hour and syncs them at intervals.

A push that cannot be written at once is dropped and counted: nothing waits for it, and the client's
next push has newer values. So memory is bounded by what is on its way to other brokers.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.effects import Effect, Notice
from barnabas.metadata.client_metrics_config import TOPIC
from barnabas.metadata.image import TopicImage
from barnabas.model.errors import ApiError, BrokerError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.timers import Timers
from barnabas.node.client_telemetry import ClientTelemetry, Granted, Push, shown_id
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.internal_topic_host import InternalTopicHost
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import build_own

LANE = "client metrics"
PARTITIONS = 6
HOUR_MS = 3_600_000
CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": str(HOUR_MS),
    "segment.ms": str(HOUR_MS // 4),
    "flush": "interval",
    "max.message.bytes": str(2 << 20),
}
SENDING_BYTES_MAX = 16 << 20
"""What is on its way to other brokers."""
NOTICE_EVERY_MS = 60_000
PRODUCE_TIMEOUT_MS = 4_000
ACKS_LEADER = 1
NO_LEADER = -1


class ClientMetrics(NamedTuple):
    """What a broker that takes metrics of clients has."""

    clients: ClientTelemetry
    topic: "ClientMetricsTopic"


class ClientMetricsTopic:
    """The way of pushed metrics to their topic."""

    def __init__(
        self, host: InternalTopicHost, peers: BrokerRequests, timers: Timers, outbox: list[Effect]
    ) -> None:
        self._host = host
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._is_creating = False
        self._sending_bytes = 0
        self._next = 0
        """Where the next record goes, if this broker leads several partitions or none."""
        self._unreported = 0
        self._noticed_ms: int | None = None
        self.dropped = 0
        """Pushes that were not written."""

    def prepare(self) -> None:
        """Create the topic if it is missing, before the first push comes."""
        if TOPIC not in self._host.image.topics:
            try:
                self._create()
            except BrokerError as error:
                self._created(str(error))

    def append(
        self, granted: Granted, facts: Mapping[str, str], push: Push, metrics: bytes
    ) -> None:
        """Write a push, or drop it."""
        record = (self._key(granted, facts, push), metrics)
        topic = self._host.image.topics.get(TOPIC)
        try:
            if topic is None:
                self._create()
                self._drop("the topic is being created")
            else:
                self._write(topic, build_own([record], self._timers.wall_ms))
        except BrokerError as error:
            self._drop(str(error))

    def _key(self, granted: Granted, facts: Mapping[str, str], push: Push) -> bytes:
        found = {
            "client_instance_id": shown_id(granted.instance_id),
            **facts,
            "broker": self._host.node_id,
            "codec": push.codec,
            "interval_ms": granted.interval_ms,
            "is_last": push.is_last,
        }
        return json.dumps(found).encode()

    def _create(self) -> None:
        if self._is_creating:
            return
        self._is_creating = True
        replicas = self._host.settings.replication.default_replication_factor
        created = self._host.ensure_topic(
            TOPIC, PARTITIONS, CONFIG, self._timers.wall_ms, replication_factor=replicas
        )
        created.when_done(lambda _: self._created(), lambda error: self._created(str(error)))

    def _created(self, problem: str = "") -> None:
        self._is_creating = False
        if problem:
            self._notice(problem)

    def _write(self, topic: TopicImage, batch: bytearray) -> None:
        """Append to a partition that this broker leads; without one, to another broker's."""
        leaders = [partition.leader for partition in topic.partitions]
        own = [number for number, leader in enumerate(leaders) if leader == self._host.node_id]
        others = [number for number, leader in enumerate(leaders) if leader != NO_LEADER]
        numbers = own or others
        if not numbers:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "no partition has a leader")
        self._next += 1
        number = numbers[self._next % len(numbers)]
        if own:
            self._host.find(TOPIC, number).leader.append_own(batch)
        else:
            self._send(NodeId(leaders[number]), topic, number, batch)

    def _send(self, leader: NodeId, topic: TopicImage, number: int, batch: bytearray) -> None:
        size = len(batch)
        if self._sending_bytes + size > SENDING_BYTES_MAX:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "other brokers are too slow")
        part = PartitionProduceData(index=number, records=memoryview(batch))
        data = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])
        request = ProduceRequest(acks=ACKS_LEADER, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[data])

        def received(response: ProduceResponse) -> None:
            self._sending_bytes -= size
            (result,) = response.responses[0].partition_responses
            if result.error_code:
                self._drop(ErrorCode(result.error_code).name)

        def failed(error: Exception) -> None:
            self._sending_bytes -= size
            self._drop(str(error))

        self._sending_bytes += size
        self._peers.ask(leader, request, lane=LANE).when_done(received, failed)

    def _drop(self, problem: str) -> None:
        self.dropped += 1
        self._unreported += 1
        self._notice(problem)

    def _notice(self, problem: str) -> None:
        """Log how many pushes were dropped, once a minute at most."""
        now_ms = self._timers.now_ms
        if self._noticed_ms is not None and now_ms - self._noticed_ms < NOTICE_EVERY_MS:
            return
        facts = {"topic": TOPIC, "pushes": self._unreported, "problem": problem}
        self._outbox.append(Notice("warning", "metrics of clients were not written", facts))
        self._noticed_ms, self._unreported = now_ms, 0
