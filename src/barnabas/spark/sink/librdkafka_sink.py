"""Writes rows with librdkafka if the settings need what only it supports, such as Kerberos.

Our own connections support PLAIN, SCRAM, static tokens and PEM certificates. For all other settings
rows go through confluent-kafka one at a time, at least once, at a fraction of the speed. Keys get
the same partitions as in Java.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import confluent_kafka

from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.sink_columns import Columns
from barnabas.spark.sink.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

Report = Callable[[confluent_kafka.KafkaError | None, confluent_kafka.Message], None]
PARTITIONER = "murmur2_random"
ANY_PARTITION = -1


def write_by_librdkafka(
    iterator: Iterator["pa.RecordBatch"], options: SinkOptions, columns: Columns
) -> int:
    """Write all rows; return how many, once every one of them is acknowledged."""
    failures: list[str] = []

    def delivered(
        error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            failures.append(f"{message.topic()}-{message.partition()}: {error.str()}")

    producer = confluent_kafka.Producer(
        {
            "partitioner": PARTITIONER,
            "enable.idempotence": options.delivery.acks == -1,
            **options.properties,
        }
    )
    rows = 0
    for batch in iterator:
        rows += batch.num_rows
        for row in _messages(batch, options, columns):
            _produce(producer, row, delivered)
        if failures:
            break
    left = producer.flush(options.delivery.delivery_timeout_ms / 1000)
    if failures or left:
        raise DeliveryError(
            f"{len(failures) + left} rows were not delivered; the first: "
            + (failures[0] if failures else "no answer within kafka.delivery.timeout.ms")
        )
    return rows


def _produce(
    producer: confluent_kafka.Producer, message: dict[str, Any], delivered: Report
) -> None:
    while True:
        try:
            producer.produce(**message, on_delivery=delivered)
        except BufferError:
            producer.poll(1)
        else:
            producer.poll(0)
            return


def _messages(
    batch: "pa.RecordBatch", options: SinkOptions, columns: Columns
) -> Iterator[dict[str, Any]]:
    def column(place: int | None) -> list[Any]:
        return [None] * batch.num_rows if place is None else batch.column(place).to_pylist()

    rows = zip(*(column(place) for place in columns), strict=True)
    for value, key, headers, topic, partition, timestamp in rows:
        message = {
            "topic": options.topic or topic,
            "value": value,
            "key": key,
            "headers": [(each["key"], each["value"]) for each in headers or []],
            "partition": ANY_PARTITION if partition is None else partition,
        }
        if timestamp is not None:
            message["timestamp"] = int(timestamp.timestamp() * 1000)
        if message["topic"] is None:
            raise DeliveryError(
                "A row has no topic: column topic is null; filter such rows, or set option topic"
            )
        yield message
