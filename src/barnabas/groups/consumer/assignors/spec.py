"""The input and the output of an assignor."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.model.ids import TopicId

Slot = tuple[TopicId, int]
"""One partition of a topic, by the topic's id."""

Slots = frozenset[Slot]
NO_SLOTS: Slots = frozenset()


class Share(NamedTuple):
    """One member, as an assignor sees it."""

    topics: frozenset[TopicId]
    """The topics that it subscribes to; missing ones are ignored."""

    slots: Slots = NO_SLOTS
    """Its target assignment so far."""

    instance_id: str | None = None


Assign = Callable[[Mapping[str, Share], Mapping[TopicId, int]], dict[str, Slots]]
"""Takes members and the number of partitions of each topic; returns the target assignment."""
