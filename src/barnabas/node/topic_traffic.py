"""How much went through each topic on this broker: plain numbers, added up once a batch.

A broker without an HTTP listener has none of this (`Node.traffic` is None), and counts nothing.

The numbers of a deleted topic are added to those of `without_topic`. So the totals of a broker
never go back.
"""

from collections.abc import Iterator

from barnabas.metadata.image import Image
from barnabas.model.ids import TopicId


class TopicTraffic:
    """The numbers of one topic since the start of the process."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
        "storage_errors",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        """What this broker appended as a leader."""
        self.bytes_out = 0
        """What consumers fetched."""
        self.produces = 0
        """Batches in Produce requests, refused ones included."""
        self.failed_produces = 0
        self.fetches = 0
        """Partitions in responses to Fetch requests of consumers."""
        self.failed_fetches = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.bytes_rejected = 0
        self.storage_errors = 0
        """Appends that the disk refused."""

    def add(self, other: "TopicTraffic") -> None:
        """Add the numbers of another topic."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The numbers of all topics that have had a replica here."""

    def __init__(self) -> None:
        self._by_name: dict[str, TopicTraffic] = {}
        self.without_topic = TopicTraffic()
        """Of deleted topics, and of requests for topics that are not here."""

    def __iter__(self) -> Iterator[tuple[str, TopicTraffic]]:
        return iter(list(self._by_name.items()))

    def of(self, topic: str) -> TopicTraffic:
        """Return the numbers of a topic that has a replica here."""
        found = self._by_name.get(topic)
        if found is None:
            found = self._by_name[topic] = TopicTraffic()
        return found

    def named(self, key: str | bytes, image: Image) -> TopicTraffic:
        """Return the numbers of a topic by its name or id, those without a topic if it is unknown.

        Clients can name any topic, so an unknown name gets no numbers of its own.
        """
        name = key if isinstance(key, str) else image.names.get(TopicId(key), "")
        return self._by_name.get(name, self.without_topic)

    def forget(self, topic: str) -> None:
        """Drop a deleted topic; its numbers stay in the totals."""
        gone = self._by_name.pop(topic, None)
        if gone is not None:
            self.without_topic.add(gone)

    def total(self) -> TopicTraffic:
        """Return the numbers of the broker."""
        total = TopicTraffic()
        total.add(self.without_topic)
        for each in self._by_name.values():
            total.add(each)
        return total
