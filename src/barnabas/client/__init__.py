"""A typed producer and consumer on top of confluent-kafka, and work queues.

They work with any Kafka-compatible broker; `Queue` with those that have share groups. `Producer`,
`Consumer` and `Queue` block; `AsyncProducer`, `AsyncConsumer` and `AsyncQueue` are the asyncio
versions. All errors are `ClientError`s whose message says what to
change.
"""

from barnabas.client.async_consumer import AsyncConsumer
from barnabas.client.async_producer import AsyncProducer
from barnabas.client.async_queue import AsyncQueue
from barnabas.client.async_worker import AsyncWorker
from barnabas.client.client_messages import Message, Record, SendResult
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    ArgumentError,
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    ClosedError,
    GroupError,
    LockLostError,
    NotAllowedError,
    NotDeliveredError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    SettingError,
    TopicExistsError,
    UnknownTopicError,
    UnsupportedError,
    UsageError,
)
from barnabas.client.producer import Producer
from barnabas.client.queue import Queue
from barnabas.client.queue_message import QueueMessage
from barnabas.client.queue_stats import PartitionStats, QueueStats
from barnabas.client.worker import Worker
from barnabas.model.ids import TopicPartition

__all__ = [
    "ArgumentError",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncQueue",
    "AsyncWorker",
    "AuthenticationError",
    "BrokerUnreachableError",
    "ClientError",
    "ClosedError",
    "Consumer",
    "GroupError",
    "LockLostError",
    "Message",
    "NotAllowedError",
    "NotDeliveredError",
    "OffsetOutOfRangeError",
    "PartitionStats",
    "Producer",
    "Queue",
    "QueueMessage",
    "QueueStats",
    "Record",
    "RecordTooLargeError",
    "SendResult",
    "SettingError",
    "TopicExistsError",
    "TopicPartition",
    "UnknownTopicError",
    "UnsupportedError",
    "UsageError",
    "Worker",
]
