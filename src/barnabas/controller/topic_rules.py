"""The topic configs that leader elections and ISR changes depend on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.metadata.topic_config import definition


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What a topic requires of its replicas."""

    min_insync: int
    unclean_election: bool
    """Whether an out-of-sync replica may lead if no other is left."""
    flush_on_ack: bool
    """Whether a replica syncs records before it acknowledges them."""

    def has_enough_in_sync(self, partition: PartitionImage) -> bool:
        """Whether enough replicas are in sync for the high watermark to advance.

        Leaders use the same number. A topic with fewer replicas than it requires needs all of them.
        """
        return len(partition.isr) >= min(self.min_insync, len(partition.replicas))


def rules_of(topic: TopicImage, defaults: Mapping[str, str]) -> TopicRules:
    """Return the rules of a topic: its own configs, else the defaults of all topics."""

    def value(name: str) -> Any:  # noqa: ANN401  # each config has a type of its own
        known = definition(name)
        return known.parse(topic.config.get(name, defaults.get(name, known.default)))

    return TopicRules(
        min_insync=value("min.insync.replicas"),
        unclean_election=value("unclean.leader.election.enable"),
        flush_on_ack=value("flush") == "ack" or value("flush.messages") == 1,
    )
