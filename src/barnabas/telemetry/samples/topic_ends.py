"""Looks up the end offsets of a topic, to compute the lag of its readers."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

ANSWER_TIMEOUT_S = 2.0


class TopicEnds:
    """Asks a broker; keeps the last answer in case the broker does not answer."""

    def __init__(self, client: Mapping[str, Any], topic: str) -> None:
        """Take librdkafka's properties."""
        self._admin = AdminClient({"log_level": 0, **client})
        self._topic = topic
        self._known: dict[str, dict[str, int]] = {}
        self.answered = False

    def ask(self) -> dict[str, dict[str, int]]:
        """Return the end of each partition, by topic and number, like a position of Spark."""
        try:
            self._known = {self._topic: self._offsets()}
            self.answered = True
        except KafkaException:
            self.answered = False
        return self._known

    def _offsets(self) -> dict[str, int]:
        listed = self._admin.list_topics(self._topic, timeout=ANSWER_TIMEOUT_S)
        places = [TopicPartition(self._topic, n) for n in listed.topics[self._topic].partitions]
        asked = {place: OffsetSpec.latest() for place in places}
        answers = self._admin.list_offsets(asked, request_timeout=ANSWER_TIMEOUT_S)
        return {str(place.partition): answer.result().offset for place, answer in answers.items()}
