"""Prepares and starts the nodes of the two clusters under one interface.

Kafka's nodes are broker and controller at once, with the JVM flags, the heap (1 GB each) and the
settings of the single broker of this bench. The settings of a cluster follow them, and the last
value of a setting counts. Barnabas's nodes are `barnabas serve`.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.brokers import (
    BROKERS,
    CLUSTER_ID,
    FORMAT_TIMEOUT_S,
    KAFKA_JVM,
    KAFKA_PROPERTIES,
    Flush,
    java,
)
from bench.places import BARNABAS, KAFKA_LOGGING
from bench.process import output_of

SHORT_SESSION_MS = 3000
SHORT_HEARTBEAT_MS = 500


@dataclass(frozen=True)
class Shape:
    """The settings of a cluster; rows with the same shape share a cluster."""

    nodes: int = 3
    session_ms: int | None = None
    """The session timeout of brokers; None is each system's default, 9 s in both."""
    replicas: int = 3
    in_sync_min: int = 2


@dataclass(frozen=True)
class Node:
    """One member: its number, its address, its folder."""

    number: int
    port: int
    peer_port: int
    data: Path

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"


class System(Protocol):
    """The interface of a cluster's nodes."""

    @property
    def name(self) -> str:
        """The key in results and on the command line."""

    def prepare(self, nodes: Sequence[Node], shape: Shape) -> None:
        """Prepare fresh folders."""

    def command(self, node: Node, nodes: Sequence[Node]) -> list[str | Path]:
        """The process to start."""

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """The topic settings for this flush policy."""


@dataclass(frozen=True)
class BarnabasNodes:
    """`barnabas serve`, which votes and serves."""

    name: str = "barnabas"

    def prepare(self, nodes: Sequence[Node], shape: Shape) -> None:
        """Write the common settings; the nodes create the rest themselves."""
        for node in nodes:
            node.data.mkdir(parents=True)
            settings(node).write_text(barnabas_settings(shape))

    def command(self, node: Node, nodes: Sequence[Node]) -> list[str | Path]:
        """`barnabas serve` with its number and the voters; a single node needs none."""
        serve: list[str | Path] = [BARNABAS, "serve", "--json", "--config", settings(node)]
        serve += ["--listen", node.address, "--data", node.data / "data"]
        serve += ["--node-id", str(node.number)]
        if len(nodes) == 1:
            return serve
        voters = ",".join(f"{each.number}@127.0.0.1:{each.peer_port}" for each in nodes)
        peers = ["--peer-listen", f"127.0.0.1:{node.peer_port}", "--voters", voters]
        return [*serve, *peers]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """As for one broker."""
        return BROKERS[self.name].topic_config(flush)


def settings(node: Node) -> Path:
    """The settings file of a Barnabas node."""
    return node.data / "barnabas.yaml"


def barnabas_settings(shape: Shape) -> str:
    """The replication settings, and the session timeout if it is not the default."""
    text = "replication:\n"
    text += f"  default_replication_factor: {shape.replicas}\n"
    text += f"  min_insync_replicas: {shape.in_sync_min}\n"
    if shape.session_ms is not None:
        text += "cluster:\n"
        text += f"  broker_session_timeout: {shape.session_ms}ms\n"
        text += f"  broker_heartbeat_interval: {SHORT_HEARTBEAT_MS}ms\n"
    return text


@dataclass(frozen=True)
class KafkaNodes:
    """Apache Kafka: KRaft nodes that are broker and controller."""

    name: str = "kafka"

    def prepare(self, nodes: Sequence[Node], shape: Shape) -> None:
        """Write each node's settings and format its storage with the first voters."""
        voters = ",".join(
            f"{each.number}@127.0.0.1:{each.peer_port}:{directory_id(each)}" for each in nodes
        )
        for node in nodes:
            node.data.mkdir(parents=True)
            properties(node).write_text(kafka_properties(node, nodes, shape))
            tool = [*java("kafka.tools.StorageTool"), "format", "-t", CLUSTER_ID]
            first = ["--initial-controllers", voters]
            output_of([*tool, "-c", properties(node), *first], FORMAT_TIMEOUT_S)

    def command(self, node: Node, nodes: Sequence[Node]) -> list[str | Path]:
        """The JVM that its start script would start."""
        del nodes
        logging = f"-Dlog4j2.configurationFile={KAFKA_LOGGING}"
        return [*java("kafka.Kafka", [*KAFKA_JVM, logging]), properties(node)]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """As for one broker."""
        return BROKERS[self.name].topic_config(flush)


def properties(node: Node) -> Path:
    """The settings file of a Kafka node."""
    return node.data / "server.properties"


def kafka_properties(node: Node, nodes: Sequence[Node], shape: Shape) -> str:
    """The single broker's settings, then those of a member of a cluster."""
    single = KAFKA_PROPERTIES.format(
        port=node.port, controller_port=node.peer_port, logs=node.data / "logs"
    )
    quorum = ",".join(f"127.0.0.1:{each.peer_port}" for each in nodes)
    member = {
        "node.id": node.number,
        "controller.quorum.bootstrap.servers": quorum,
        "default.replication.factor": shape.replicas,
        "min.insync.replicas": shape.in_sync_min,
        "offsets.topic.replication.factor": shape.replicas,
        "transaction.state.log.replication.factor": shape.replicas,
        "transaction.state.log.min.isr": shape.in_sync_min,
        "share.coordinator.state.topic.replication.factor": shape.replicas,
        "share.coordinator.state.topic.min.isr": shape.in_sync_min,
    }
    if shape.session_ms is not None:
        member["broker.session.timeout.ms"] = shape.session_ms
        member["broker.heartbeat.interval.ms"] = SHORT_HEARTBEAT_MS
    return single + "".join(f"{name}={value}\n" for name, value in member.items())


def directory_id(node: Node) -> str:
    """An id for a node's folder as Kafka writes it: 16 bytes in URL-safe base64, unpadded."""
    content = bytes([64, *bytes(14), node.number])
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


SYSTEMS: dict[str, System] = {system.name: system for system in (BarnabasNodes(), KafkaNodes())}
