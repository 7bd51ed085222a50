"""The few configs of a topic on which the fate of its partitions depends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.metadata.topic_config import definition


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What a topic demands of its replicas."""

    min_insync: int
    unclean_election: bool
    """Whether anyone may lead when nobody is left who has everything."""
    flush_on_ack: bool
    """Whether what a replica acknowledged is on its disk."""

    def enough(self, partition: PartitionImage) -> bool:
        """Whether so many are in sync that the high watermark may move.

        Leaders hold to the same number: a topic with fewer copies than it demands is content
        with all of them.
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
