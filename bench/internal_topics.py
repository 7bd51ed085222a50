"""Creates the brokers' internal topics and sets their flush policy for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from bench.process import LoadError, wait_until

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
TIMEOUT_S = 20.0


@contextmanager
def configured(
    admin: AdminClient, address: str, name: str, config: dict[str, str]
) -> Iterator[None]:
    """Set configs of an internal topic, and restore its own afterwards."""
    try:
        wait_until(name, lambda: exists(admin, address, name), TIMEOUT_S)
        alter(admin, name, config, AlterConfigOpType.SET)
        yield
        alter(admin, name, config, AlterConfigOpType.DELETE)
    except KafkaException as error:
        raise LoadError(f"{name}: {error}") from error


def exists(admin: AdminClient, address: str, name: str) -> bool:
    """Return whether the topic exists and its coordinators answer; the request creates it."""
    try:
        {OFFSETS: ask_for_offsets, TRANSACTIONS: ask_for_producer}[name](address)
    except KafkaException:
        return False
    found = admin.list_topics(timeout=TIMEOUT_S).topics.get(name)
    return found is not None and all(p.leader >= 0 for p in found.partitions.values())


def ask_for_offsets(address: str) -> None:
    """Send the first request of any group."""
    settings = {"bootstrap.servers": address, "group.id": "bench-first", "log_level": 0}
    consumer = Consumer(settings)
    consumer.committed([TopicPartition(OFFSETS, 0)], timeout=TIMEOUT_S)
    consumer.close()


def ask_for_producer(address: str) -> None:
    """Send the first request of any transactional producer."""
    settings = {"bootstrap.servers": address, "transactional.id": "bench-first", "log_level": 0}
    Producer(settings).init_transactions(TIMEOUT_S)


def alter(admin: AdminClient, name: str, config: dict[str, str], how: AlterConfigOpType) -> None:
    """Set or reset configs of a topic."""
    if not config:
        return
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    for key, value in config.items():
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=how))
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)
