"""Apache Kafka without security: two brokers, the first of which is the controller."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import JVM_FLAGS

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
START_S = 120.0
BROKERS = 2
PROPERTIES = """\
process.roles={roles}
node.id={number}
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def plain_kafka(folder: Path, jars: str) -> Iterator[str]:
    """Run Kafka; give its bootstrap servers."""
    controller, *clients = (free_port() for _ in range(BROKERS + 1))
    jvm = ["java", *JVM_FLAGS, "-cp", jars]
    with ExitStack() as stack:
        for number, port in enumerate(clients, 1):
            settings = _settings(folder / f"kafka-{number}", number, port, controller)
            kind = "--standalone" if number == 1 else "--no-initial-controllers"
            words = ["format", kind, "-t", CLUSTER_ID, "-c", str(settings)]
            subprocess.run(
                [*jvm, "kafka.tools.StorageTool", *words],
                check=True,
                capture_output=True,
                timeout=START_S,
            )
            log = stack.enter_context((settings.parent / "kafka.log").open("w"))
            running = subprocess.Popen(
                [*jvm, "kafka.Kafka", str(settings)], stdout=log, stderr=subprocess.STDOUT
            )
            stack.callback(running.wait)
            stack.callback(running.kill)
        bootstrap = ",".join(f"127.0.0.1:{port}" for port in clients)
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        eventually(lambda: _brokers(admin) == BROKERS, START_S)
        yield bootstrap


def _settings(folder: Path, number: int, port: int, controller: int) -> Path:
    folder.mkdir()
    own = f"PLAINTEXT://127.0.0.1:{port}"
    is_controller = number == 1
    settings = folder / "server.properties"
    settings.write_text(
        PROPERTIES.format(
            roles="broker,controller" if is_controller else "broker",
            number=number,
            controller=controller,
            listeners=f"{own},CONTROLLER://127.0.0.1:{controller}" if is_controller else own,
            logs=folder / "logs",
        )
    )
    return settings


def _brokers(admin: AdminClient) -> int:
    try:
        return len(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return 0
