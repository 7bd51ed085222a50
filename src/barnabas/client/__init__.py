"""A typed producer and consumer on top of confluent-kafka.

They work with any Kafka-compatible broker. `Producer` and `Consumer` block; `AsyncProducer` and
`AsyncConsumer` are the asyncio versions. All errors are `ClientError`s whose message says what to
change.
"""

from barnabas.client.async_consumer import AsyncConsumer
from barnabas.client.async_producer import AsyncProducer
from barnabas.client.client_messages import Message, Record, SendResult
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    ArgumentError,
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    ClosedError,
    GroupError,
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
from barnabas.model.ids import TopicPartition

__all__ = [
    "ArgumentError",
    "AsyncConsumer",
    "AsyncProducer",
    "AuthenticationError",
    "BrokerUnreachableError",
    "ClientError",
    "ClosedError",
    "Consumer",
    "GroupError",
    "Message",
    "NotAllowedError",
    "NotDeliveredError",
    "OffsetOutOfRangeError",
    "Producer",
    "Record",
    "RecordTooLargeError",
    "SendResult",
    "SettingError",
    "TopicExistsError",
    "TopicPartition",
    "UnknownTopicError",
    "UnsupportedError",
    "UsageError",
]
