"""Computes a stream's lag: the brokers' latest offsets less the offsets that the stream has
read.
"""

from collections.abc import Iterable, Mapping

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import FetchError
from barnabas.spark.source.lookups import Cluster
from barnabas.spark.source.source_options import Subscribe, parse_stream
from barnabas.spark.sql.run_status import Offsets, StreamStatus

ONE_TRY = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "100"}
PATIENCE_MS = 5000
"""How long to ask; a query waits for minutes, but people wait for what this is shown in."""


class LagReader:
    """Looks up the ends of topics, with one request for all streams."""

    def __init__(self, brokers: Mapping[str, str]) -> None:
        """Take the `kafka.*` options of a source."""
        patience = {**ONE_TRY, "kafkaConsumer.pollTimeoutMs": str(PATIENCE_MS)}
        options = {**brokers, "kafka.isolation.level": "read_committed", **patience}
        self._cluster = Cluster(parse_stream({**options, "subscribePattern": ".*"}))

    def lags(self, streams: Iterable[StreamStatus]) -> dict[str, int | None]:
        """Return the lag of each stream; None if it is not known."""
        known = list(streams)
        topics = frozenset(topic for each in known for topic in each.offsets)
        if not topics:
            return {each.name: None for each in known}
        try:
            ends = self._ends(topics)
        except FetchError:
            return {each.name: None for each in known}
        return {each.name: lag(each.offsets, ends) if each.offsets else None for each in known}

    def _ends(self, topics: frozenset[str]) -> dict[TopicPartition, int]:
        return self._cluster.latest(self._cluster.topics(Subscribe(topics)).partitions)


def lag(offsets: Offsets, ends: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets between two positions; a new partition counts from its start."""
    return sum(
        max(0, end - offsets[place.topic].get(str(place.partition), 0))
        for place, end in ends.items()
        if place.topic in offsets
    )
