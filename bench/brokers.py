"""Prepares and starts the two brokers under one interface, and sets their flush policy.

Kafka runs as its download does: the JVM flags of its start script, the values of its sample
`server.properties`, logging at INFO to a file. Two things differ. Deleted logs are removed after
one second instead of sixty, so that disk and page cache stay bounded between rows. And `java` is
called without the shell script before it, which starts it sooner.
"""

import shutil
import socket
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from bench.access import PLAINTEXT_ACCESS, Access, Listener, Setup
from bench.places import BARNABAS, JARS, KAFKA_LOGGING, KAFKA_VERSION, WORK, package_version
from bench.process import output_of

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
FORMAT_TIMEOUT_S = 60.0


FOREVER_MS = str(2**63 - 1)


class Flush(Enum):
    """When an acknowledged record is on the disk, not only in the operating system's cache."""

    LATER = "later"
    """When the operating system decides: Kafka's default."""
    SECOND = "second"
    """At most a second after the ack: what Barnabas's `flush=interval` does by default."""
    ACK = "ack"
    """Before the ack: Barnabas's default."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where and how clients connect."""

    port: int
    access: Access


class Broker(Protocol):
    """The interface of a broker."""

    @property
    def name(self) -> str:
        """The key in results and on the command line."""

    @property
    def title(self) -> str:
        """The name to show, with the version."""

    def prepare(self, data: Path, port: int) -> None:
        """Prepare a fresh data directory."""

    def command(self, data: Path, port: int) -> list[str | Path]:
        """The process to start."""

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """The topic settings for this flush policy."""

    @property
    def setup(self) -> Setup:
        """Which rows it is for."""

    def entry(self, listener: Listener, port: int) -> Entry:
        """Where and how clients of a listener connect."""

    def set_up(self, address: str) -> None:
        """Do what is to be done once the broker runs."""


class Unsecured:
    """The part of a broker with one listener."""

    @property
    def setup(self) -> Setup:
        """Which rows it is for."""
        return Setup.PLAIN

    def entry(self, listener: Listener, port: int) -> Entry:
        """The one there is."""
        assert listener is Listener.PLAINTEXT
        return Entry(port=port, access=PLAINTEXT_ACCESS)

    def set_up(self, address: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Barnabas(Unsecured):
    """This project's broker, as `barnabas serve` starts it."""

    name: str = "barnabas"

    @property
    def title(self) -> str:
        """The name and version."""
        return f"Barnabas {package_version()}"

    def prepare(self, data: Path, port: int) -> None:
        """Do nothing: the broker creates what it needs."""
        del port
        data.mkdir(parents=True)

    def command(self, data: Path, port: int) -> list[str | Path]:
        """`barnabas serve`."""
        return [BARNABAS, "serve", "--listen", f"127.0.0.1:{port}", "--data", data, "--json"]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """The policy has its own name; an infinite interval is Kafka's default."""
        return {
            Flush.LATER: {"flush": "interval", "flush.ms": FOREVER_MS},
            Flush.SECOND: {"flush": "interval", "flush.ms": "1000"},
            Flush.ACK: {"flush": "ack"},
        }[flush]


KAFKA_JVM = [
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
]

KAFKA_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={logs}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=1000
log.flush.scheduler.interval.ms=1000
"""


@dataclass(frozen=True)
class Kafka(Unsecured):
    """Apache Kafka: one KRaft node that is broker and controller."""

    name: str = "kafka"

    @property
    def title(self) -> str:
        """The name and version."""
        return f"Apache Kafka {KAFKA_VERSION}"

    def prepare(self, data: Path, port: int) -> None:
        """Write its settings and format its storage."""
        data.mkdir(parents=True)
        (data / "server.properties").write_text(self.properties(data, port))
        tool = java("kafka.tools.StorageTool")
        settings = ["format", "--standalone", "-t", CLUSTER_ID, "-c", f"{data}/server.properties"]
        output_of([*tool, *settings], FORMAT_TIMEOUT_S)

    def properties(self, data: Path, port: int) -> str:
        """The content of its settings file."""
        return KAFKA_PROPERTIES.format(port=port, controller_port=free_port(), logs=data / "logs")

    def command(self, data: Path, port: int) -> list[str | Path]:
        """The JVM that its start script would start."""
        del port
        logging = f"-Dlog4j2.configurationFile={KAFKA_LOGGING}"
        return [*java("kafka.Kafka", [*KAFKA_JVM, logging]), data / "server.properties"]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """Flushing each batch before its ack is a setting; by default the system decides."""
        return {
            Flush.LATER: {},
            Flush.SECOND: {"flush.ms": "1000"},
            Flush.ACK: {"flush.messages": "1"},
        }[flush]


BROKERS: dict[str, Broker] = {broker.name: broker for broker in (Barnabas(), Kafka())}


def java(main_class: str, flags: list[str] | None = None) -> list[str | Path]:
    """A JVM with Kafka's jars."""
    return ["java", *(flags or []), "-cp", f"{JARS}/*", main_class]


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def fresh_data(broker: Broker) -> Path:
    """The broker's data directory, emptied."""
    data = WORK / "data" / broker.name
    shutil.rmtree(data, ignore_errors=True)
    return data
