"""What an assignor is given, and what it returns."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.model.ids import TopicId

Slot = tuple[TopicId, int]
"""One partition of a topic, by the topic's id."""

Slots = frozenset[Slot]
NO_SLOTS: Slots = frozenset()


class Share(NamedTuple):
    """One member, as far as it matters for what it gets."""

    topics: frozenset[TopicId]
    """What it subscribes to; topics that are not there are passed over."""

    slots: Slots = NO_SLOTS
    """What it was to have so far."""

    instance_id: str | None = None


Assign = Callable[[Mapping[str, Share], Mapping[TopicId, int]], dict[str, Slots]]
"""Members and the number of partitions of each topic in; what each member is to have out."""
