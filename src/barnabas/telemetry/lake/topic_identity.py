"""Asks a cluster for the id of a topic and the id of the cluster."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from barnabas.telemetry.lake.lake_identity import Source

ANSWER_TIMEOUT_S = 10.0
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker without topic ids (KIP-516) answers: all bits zero."""


def source_of(client: Mapping[str, Any], topic: str) -> Source | None:
    """Return the topic as the brokers know it, or None; `client` is librdkafka's."""
    admin = AdminClient({"log_level": 0, **client})
    # All topics: a question for one of them may create it.
    cluster = admin.list_topics(timeout=ANSWER_TIMEOUT_S)
    asked = TopicCollection([topic])
    answer = admin.describe_topics(asked, request_timeout=ANSWER_TIMEOUT_S)[topic]
    try:
        topic_id = str(answer.result().topic_id)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return None
    known_id = None if topic_id == NO_ID else topic_id
    return Source(topic=topic, topic_id=known_id, cluster_id=cluster.cluster_id or None)
