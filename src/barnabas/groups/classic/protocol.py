"""Stub: to be written."""

from random import Random

from barnabas.groups.directory import Directory
from barnabas.model.coordination import Scheduler
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored


class ClassicProtocol:
    """Stub."""

    def __init__(
        self, settings: GroupSettings, scheduler: Scheduler, groups: Directory, rng: Random
    ) -> None:
        self._groups = groups

    def replay(self, stored: Stored) -> None:
        """Take in a group's metadata."""

    def loaded(self) -> None:
        """Watch members."""
