"""Stub: to be written."""

from collections.abc import Callable
from random import Random

from barnabas.groups.directory import Directory
from barnabas.metadata.image import Image
from barnabas.model.coordination import Scheduler
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored


class ConsumerProtocol:
    """Stub."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
        rng: Random,
    ) -> None:
        self._groups = groups

    def replay(self, stored: Stored) -> None:
        """Take in a record of a consumer group."""

    def loaded(self) -> None:
        """Watch members."""

    def topics_changed(self) -> None:
        """Hear that topics came, grew or went."""
