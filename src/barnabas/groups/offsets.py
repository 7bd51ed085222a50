"""Stub: to be written."""

from collections.abc import Callable, Sequence

from barnabas.groups.directory import Directory
from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord, ProducerIdAndEpoch, Scheduler
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored


class Offsets:
    """Stub."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
    ) -> None:
        self._groups = groups

    def replay(self, stored: Stored, producer: ProducerIdAndEpoch | None) -> None:
        """Take in a committed offset, or one that waits for its transaction."""

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """End a transaction."""

    def loaded(self) -> None:
        """Begin to expire."""

    def forget_topics(self, names: Sequence[str]) -> list[CoordinatorRecord]:
        """Return the tombstones of everything committed for topics that are gone."""
        return []
