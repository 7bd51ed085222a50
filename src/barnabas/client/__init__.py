"""Producer and consumer: thin, typed faces of confluent-kafka.

They speak to any Kafka-compatible broker. `Producer` and `Consumer` block; `AsyncProducer` and
`AsyncConsumer` are their asyncio twins. What goes wrong is raised as a `ClientError` whose text
says what to change.
"""

from barnabas.client.aio import AsyncConsumer, AsyncProducer
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    ClosedError,
    GroupError,
    NotAllowedError,
    NotDeliveredError,
    RecordTooLargeError,
    SettingError,
    TopicExistsError,
    UnknownTopicError,
    UnsupportedError,
)
from barnabas.client.messages import Message, Record, SendResult
from barnabas.client.producer import Producer
from barnabas.model.ids import TopicPartition

__all__ = [
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
    "Producer",
    "Record",
    "RecordTooLargeError",
    "SendResult",
    "SettingError",
    "TopicExistsError",
    "TopicPartition",
    "UnknownTopicError",
    "UnsupportedError",
]
