"""Where the partitions of a share consumer are led now."""

from collections.abc import Iterable, Mapping

from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.wire.cluster_wire import Node, Wire
from barnabas.wire.share_values import Place
from barnabas.wire.wire_failures import LinkError

ANSWER_TIMEOUT_S = 10.0


class ShareTopics:
    """The names and leaders of partitions; looked up on request, and kept until then."""

    def __init__(
        self, properties: Mapping[str, object], client_id: str, topics: Iterable[str]
    ) -> None:
        self._properties, self._client_id = properties, client_id
        self._topics = list(topics)
        self._wire: Wire | None = None
        self.names: dict[bytes, str] = {}
        """The name of each topic, by its id."""
        self._leaders: dict[Place, Node] = {}

    def leader(self, place: Place) -> Node | None:
        """Return the leader of a partition; None if it has none, or is not known."""
        return self._leaders.get(place)

    def look_up(self) -> None:
        """Ask a broker; raise `LinkError` if none answers."""
        try:
            if self._wire is None:
                self._wire = Wire(self._properties, self._client_id, ANSWER_TIMEOUT_S)
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in self._topics],
                allow_auto_topic_creation=False,
            )
            self._take(self._wire.ask_any(request, MetadataResponse))
        except LinkError:
            self.close()
            raise

    def close(self) -> None:
        """Hang up; the next look up connects again."""
        if self._wire is not None:
            self._wire.__exit__(None, None, None)
            self._wire = None

    def _take(self, answer: MetadataResponse) -> None:
        nodes = {each.node_id: Node(each.node_id, each.host, each.port) for each in answer.brokers}
        self._leaders = {
            Place(topic.topic_id, each.partition_index): nodes[each.leader_id]
            for topic in answer.topics
            for each in topic.partitions
            if each.leader_id in nodes
        }
        self.names = {topic.topic_id: topic.name or "" for topic in answer.topics}
