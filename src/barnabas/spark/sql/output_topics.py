"""Creates the missing topics that a file of statements writes to."""

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.spark.client_properties import client_properties
from barnabas.spark.sql.sql_sources import dead_letter_topic
from barnabas.spark.sql.statements import CreateSource, CreateStream, Into, Statement

REQUEST_TIMEOUT_S = 30


def output_topics(statements: Iterable[Statement]) -> list[str]:
    """Return the topics of streams and dead letters."""
    found: dict[str, None] = {}
    for each in statements:
        if isinstance(each, CreateSource):
            letters = dead_letter_topic(each)
            found |= {} if letters is None else {letters: None}
        if isinstance(each, CreateStream) and each.into is Into.TOPIC:
            found[each.target] = None
    return list(found)


def create_missing(brokers: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Create missing topics, with the brokers' defaults; return their names."""
    admin = AdminClient({"log_level": 0, **client_properties(brokers)})
    there = set(admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)
    wanted = [NewTopic(name, -1, -1) for name in names if name not in there]
    if not wanted:
        return []
    answers = admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S)
    for answer in answers.values():
        try:
            answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    return list(answers)
