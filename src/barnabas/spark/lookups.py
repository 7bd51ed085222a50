"""What the driver asks the cluster: partitions, their offsets, and to note a group's progress.

It goes through librdkafka, so that TLS and SASL work as `kafka.*` options say.
"""

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from barnabas.model.ids import TopicPartition
from barnabas.spark.failures import FetchError, OptionError
from barnabas.spark.offsets import Offsets
from barnabas.spark.options import Assign, ReadSettings, Subscribe, Subscription
from barnabas.spark.properties import BOOTSTRAP, request_timeout_s

LOOKUP_TIMEOUT_S = 15.0
POST_TIMEOUT_S = 5.0
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics of the brokers' own; no pattern matches them, as in Java's clients."""
CONSUMERS_ONLY = ("group.", "isolation.level", "fetch.", "max.partition.fetch", "check.crcs")

log = logging.getLogger("barnabas.spark")
T = TypeVar("T")


class Cluster:
    """The brokers, as the driver sees them."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._known_client: AdminClient | None = None
        self._timeout_s = request_timeout_s(settings.client, LOOKUP_TIMEOUT_S)

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        """Return the partitions that there are of what is subscribed to."""
        topics = self._asked(self._list_topics, "list its topics")
        wanted = frozenset(
            TopicPartition(name, number)
            for name, numbers in topics.items()
            if _covers(subscription, name)
            for number in numbers
        )
        return wanted & subscription.partitions if isinstance(subscription, Assign) else wanted

    def earliest(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions start."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.earliest()))

    def latest(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions end, for readers of this isolation level."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()))

    def at_times(self, times_ms: Offsets) -> dict[TopicPartition, int]:
        """Return the first offsets from a time on; -1 where nothing is that young."""
        return self._offsets(
            {place: OffsetSpec.for_timestamp(time_ms) for place, time_ms in times_ms.items()}
        )

    def post(self, group: str, offsets: Offsets) -> None:
        """Note how far a group is; that it cannot be noted is no reason to stop."""
        positions = [ClientPartition(*place, offset) for place, offset in offsets.items()]
        try:
            request = [ConsumerGroupTopicPartitions(group, positions)]
            futures = self._client.alter_consumer_group_offsets(
                request, request_timeout=POST_TIMEOUT_S
            )
            answers = futures[group].result().topic_partitions
            errors = {str(each.error) for each in answers if each.error is not None}
        except KafkaException as error:
            errors = {str(error)}
        for why in sorted(errors):
            log.warning("The progress of group %s could not be posted: %s", group, why)

    @property
    def _client(self) -> AdminClient:
        if self._known_client is None:
            self._known_client = AdminClient(admin_properties(self._settings.client))
        return self._known_client

    def _list_topics(self) -> dict[str, list[int]]:
        found = self._client.list_topics(timeout=self._timeout_s).topics
        return {name: sorted(topic.partitions) for name, topic in found.items() if not topic.error}

    def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        if not specs:
            return {}
        return self._asked(lambda: self._list_offsets(specs), "tell its offsets")

    def _list_offsets(self, specs: Mapping[TopicPartition, Any]) -> dict[TopicPartition, int]:
        level = (
            IsolationLevel.READ_COMMITTED
            if self._settings.is_read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        futures: dict[Any, Future[Any]] = self._client.list_offsets(
            {ClientPartition(*place): spec for place, spec in specs.items()},
            isolation_level=level,
            request_timeout=self._timeout_s,
        )
        return {
            TopicPartition(each.topic, each.partition): future.result().offset
            for each, future in futures.items()
        }

    def _asked(self, ask: Callable[[], T], what: str) -> T:
        """Ask again, as often as the options say, before giving up."""
        for attempt in range(self._settings.lookup_retries + 1):
            try:
                return ask()
            except KafkaException as error:
                if attempt == self._settings.lookup_retries:
                    raise FetchError(
                        f"The cluster at {self._settings.client[BOOTSTRAP]} could not {what}: "
                        f"{error.args[0]}; check the address and the brokers' logs"
                    ) from error
                time.sleep(self._settings.lookup_pause_ms / 1000)
        raise AssertionError("the last attempt returns or raises")


def _covers(subscription: Subscription, topic: str) -> bool:
    if isinstance(subscription, Assign):
        return any(place.topic == topic for place in subscription.partitions)
    if isinstance(subscription, Subscribe):
        return topic in subscription.topics
    return topic not in INTERNAL and re.fullmatch(subscription.pattern, topic) is not None


def admin_properties(client: Mapping[str, str]) -> dict[str, str | int]:
    """Return the properties that are not for consumers alone."""
    kept = {k: v for k, v in client.items() if not k.startswith(CONSUMERS_ONLY)}
    return {"log_level": 0, **kept}


def check_properties(client: Mapping[str, str]) -> None:
    """Refuse `kafka.*` options that librdkafka does not know, or with values it does not take."""
    offline = {name: value for name, value in client.items() if name != BOOTSTRAP}
    try:
        Consumer({"log_level": 0, **offline, "group.id": "check"}).close()
    except KafkaException as error:
        raise OptionError(
            f"A kafka.* option cannot be used: {error.args[0].str()}; correct it or leave it out "
            "(names and values are librdkafka's)"
        ) from None


def existing(subscription: Subscription, found: Iterable[TopicPartition]) -> None:
    """Refuse topics and partitions by name that do not exist."""
    places = set(found)
    if isinstance(subscription, Assign):
        missing = sorted(str(place) for place in subscription.partitions - places)
    elif isinstance(subscription, Subscribe):
        missing = sorted(subscription.topics - {place.topic for place in places})
    else:
        missing = []
    if missing:
        raise OptionError(f"There is no {', '.join(missing)}; create it first, or correct the name")
