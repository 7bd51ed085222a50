"""What a part of the broker needs to write to an internal topic, which any broker may lead."""

from collections.abc import Mapping
from typing import Protocol

from barnabas.metadata.image import Image
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings
from barnabas.node.partitions.partition import Partition


class InternalTopicHost(Protocol):
    """The broker, as writers of internal topics see it."""

    @property
    def node_id(self) -> NodeId:
        """This broker's id."""

    @property
    def settings(self) -> Settings:
        """The broker's settings."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that this broker leads, or raise `ApiError`."""

    def ensure_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        now_ms: int,
        *,
        replication_factor: int,
    ) -> Pending[None]:
        """Create a topic; answer once it is in the metadata here."""
