"""Tests aiokafka: it reads what it has sent."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker
from tests.support.clusters.cluster_choice import brokers

aiokafka = pytest.importorskip("aiokafka")
admin = pytest.importorskip("aiokafka.admin")

pytestmark = pytest.mark.compat

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
PATIENCE_S = 30


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


class Started:
    """A client between its start and its stop."""

    def __init__(self, client: Any, stop: str = "stop") -> None:
        self._client = client
        self._stop = stop

    async def __aenter__(self) -> Any:
        await self._client.start()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await getattr(self._client, self._stop)()


def admin_of(broker: Broker) -> Started:
    return Started(admin.AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap), "close")


def consumer_of(broker: Broker) -> Started:
    return Started(
        aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, fetch_max_wait_ms=20)
    )


async def produce(broker: Broker, topic: str, records: list[Record], **config: Any) -> list[Any]:
    made = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **config)
    async with Started(made) as producer:
        futures = [
            await producer.send(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp_ms=record.timestamp,
                headers=list(record.headers),
            )
            for record in records
        ]
        return list(await asyncio.gather(*futures))


async def read(consumer: Any, topic: str, offset: int | None, count: int) -> list[Record]:
    place = aiokafka.TopicPartition(topic, 0)
    consumer.assign([place])
    if offset is None:
        await consumer.seek_to_beginning(place)
    else:
        consumer.seek(place, offset)
    found: list[Record] = []
    while len(found) < count:
        for messages in (await consumer.getmany(timeout_ms=500)).values():
            found += [
                Record(m.offset, m.timestamp, m.key, m.value, tuple(m.headers)) for m in messages
            ]
    return found


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back(
    broker: Broker, topic: str, sent: list[Record], codec: str | None, acks: int | str
) -> None:
    async def scenario() -> None:
        async with admin_of(broker) as client:
            await client.create_topics([admin.NewTopic(topic, 1, 1)])
        reports = await produce(broker, topic, sent, compression_type=codec, acks=acks)
        if acks != 0:
            assert [report.offset for report in reports] == [record.offset for record in sent]
        async with consumer_of(broker) as consumer:
            assert await read(consumer, topic, None, len(sent)) == sent
            assert await read(consumer, topic, 37, len(sent) - 37) == sent[37:]
            place = aiokafka.TopicPartition(topic, 0)
            found = await consumer.offsets_for_times({place: sent[20].timestamp - 9})
            assert (found[place].offset, found[place].timestamp) == (20, sent[20].timestamp)
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.end_offsets([place]) == {place: len(sent)}

    run(scenario())


def test_an_idempotent_producer_has_its_way(broker: Broker, topic: str, sent: list[Record]) -> None:
    async def scenario() -> None:
        reports = await produce(broker, topic, sent, enable_idempotence=True)
        assert [report.offset for report in reports] == [record.offset for record in sent]
        async with consumer_of(broker) as consumer:
            assert await read(consumer, topic, 0, len(sent)) == sent

    run(scenario())


def test_the_admin_client_runs_a_topic(broker: Broker, topic: str, sent: list[Record]) -> None:
    async def scenario() -> None:
        async with admin_of(broker) as client:
            config = {"max.message.bytes": "90000"}
            await client.create_topics([admin.NewTopic(topic, 2, 1, topic_configs=config)])
            await client.create_partitions({topic: admin.NewPartitions(3)})
            # The client asks any broker, and another one may learn of it a little later.
            (described,) = await client.describe_topics([topic])
            while brokers() > 1 and len(described["partitions"]) < 3:
                (described,) = await client.describe_topics([topic])
            assert len(described["partitions"]) == 3
            resource = admin.config_resource.ConfigResource(
                admin.config_resource.ConfigResourceType.TOPIC, topic
            )
            assert "90000" in str(await client.describe_configs([resource]))
            await produce(broker, topic, sent, acks="all")
            place = aiokafka.TopicPartition(topic, 0)
            await client.delete_records({place: admin.RecordsToDelete(before_offset=10)})
            async with consumer_of(broker) as consumer:
                assert await consumer.beginning_offsets([place]) == {place: 10}
            await client.delete_topics([topic])
            listed = await client.list_topics()
            while brokers() > 1 and topic in listed:
                listed = await client.list_topics()
            assert topic not in listed

    run(scenario())
