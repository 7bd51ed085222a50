"""Checks the settings of the audit log."""

from collections.abc import Iterator

from barnabas.controller.topic_decisions import METADATA_TOPIC, check_name
from barnabas.metadata.image import INTERNAL_TOPICS
from barnabas.model.errors import ApiError
from barnabas.model.settings import Settings


def audit_problems(settings: Settings) -> Iterator[str]:
    """Return why a topic cannot be the audit topic, with what to change."""
    topic = settings.security.audit_topic
    if topic is None:
        return
    try:
        check_name(topic)
    except ApiError as error:
        yield f"security.audit_topic: {error.message}"
    if topic in {*INTERNAL_TOPICS, METADATA_TOPIC}:
        yield f"security.audit_topic: {topic} has records of its own; choose another name"
    if settings.security.authorizer == "none":
        yield (
            "security.audit_topic needs security.authorizer: acl; without it every client could "
            "write to the topic"
        )
