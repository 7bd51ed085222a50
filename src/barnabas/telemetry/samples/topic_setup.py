"""Creates the missing topics of the pipeline.

The broker sets the timestamps of samples, so that wrong clocks can be detected; gpu-latest is
compacted, since only the last state of a GPU counts.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.telemetry.samples import telemetry_topics as topics

REQUEST_TIMEOUT_S = 30
CONFIG: dict[str, dict[str, str]] = {
    topics.SAMPLES: {"message.timestamp.type": "LogAppendTime"},
    topics.REFUSED: {},
    topics.ALERTS: {},
    topics.LATEST: {"cleanup.policy": "compact"},
}


def create_missing(client: Mapping[str, Any], partitions: int = 2) -> list[str]:
    """Create missing topics and return their names; `client` is librdkafka's."""
    admin = AdminClient(dict(client))
    wanted = [
        NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        for name, config in CONFIG.items()
    ]
    answers = admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S)
    return [name for name, answer in answers.items() if _is_new(answer)]


def _is_new(answer: Any) -> bool:  # noqa: ANN401 - confluent's futures have no type
    try:
        answer.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True
