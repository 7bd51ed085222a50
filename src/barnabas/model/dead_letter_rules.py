"""The configs of dead letters of a group (KIP-1191), and what is wrong with a name in them."""

from collections.abc import Collection
from typing import NamedTuple

TOPIC_NAME = "errors.deadletterqueue.topic.name"
"""Group config: the dead-letter topic. Empty, the default, for none."""
COPY_RECORD = "errors.deadletterqueue.copy.record.enable"
"""Group config: whether a dead letter has the record. Kafka's default is false, here it is true."""
FLOOD_LIMIT = "errors.deadletterqueue.records.per.minute"
"""Group config of ours: so many dead letters of a partition in a minute pause its delivery until
the minute is over. 0, the default, for no limit."""
GROUP_ENABLE = "errors.deadletterqueue.group.enable"
"""Topic config: whether share groups may write dead letters to the topic."""
DEFAULT_PREFIX = "dlq."
"""How the names of dead-letter topics begin. It is a broker config in Kafka, and fixed here."""
INTERNAL_PREFIX = "__"


class DeadLetterRules(NamedTuple):
    """What applies to one group."""

    topic: str
    copies: bool = True
    """Whether a dead letter is the whole record, and not only headers."""
    flood_limit: int = 0
    """How many dead letters of a partition in a minute pause its delivery; 0 for no limit."""


def problem_with(
    topic: str, sources: Collection[str] = (), prefix: str = DEFAULT_PREFIX
) -> str | None:
    """Return why a group cannot have a dead-letter topic of this name; None if it can.

    The sources are the topics that the group is known to read.
    """
    if topic.startswith(INTERNAL_PREFIX):
        return (
            f'"{topic}" cannot be a dead-letter topic: names that begin with "__" are internal. '
            "Choose another name."
        )
    if not topic.startswith(prefix):
        return (
            f'"{topic}" cannot be a dead-letter topic: its name must begin with "{prefix}". '
            "Choose another name."
        )
    if topic in sources:
        return (
            f'"{topic}" cannot be the dead-letter topic of a group that reads it: the group would '
            "get its own dead letters again. Choose another topic."
        )
    return None
