"""Requests that the driver sends to the cluster: partitions, their offsets, and commits of
progress.

It uses librdkafka, with TLS and SASL as in the `kafka.*` options. The driver has the same timeout
as the tasks: a retriable error (a broker that restarts, a leader that moves) is retried for
`kafkaConsumer.pollTimeoutMs`. Any other error is retried `fetchOffset.numRetries` times.
"""

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from barnabas.model.ids import TopicPartition
from barnabas.spark.client_properties import BOOTSTRAP, request_timeout_s
from barnabas.spark.query_errors import FetchError, OptionError
from barnabas.spark.source.data_loss import GONE_PATIENCE_S
from barnabas.spark.source.offset_json import Offsets
from barnabas.spark.source.source_options import Assign, ReadSettings, Subscribe, Subscription
from barnabas.spark.source.stream_positions import Position

LOOKUP_TIMEOUT_S = 15.0
LOOKUP_TIMEOUT_MIN_S = 1.0
POST_TIMEOUT_S = 5.0
RECONNECT_MS_MAX = 1000
"""The longest pause before another connection; librdkafka's 10 s would outlast most restarts."""
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Internal topics of brokers; no pattern matches them, as in Java's clients."""
CONSUMERS_ONLY = ("group.", "isolation.level", "fetch.", "max.partition.fetch", "check.crcs")
POSTED_BY = "barnabas-spark"
"""The metadata of our committed offsets, which distinguishes them from other consumers' offsets."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of every topic if the brokers have no topic ids (before Kafka 2.8)."""

PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._WAIT_COORD,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}
"""Retriable errors."""

log = logging.getLogger("barnabas.spark")
T = TypeVar("T")


class Topics(NamedTuple):
    """The partitions and topic ids of a read, in the present cluster."""

    partitions: frozenset[TopicPartition]
    ids: Mapping[str, str]


class Cluster:
    """The driver's requests to the brokers."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._bootstrap = settings.client[BOOTSTRAP]
        self._known_client: AdminClient | None = None
        self._last_warning = ""

    def topics(self, subscription: Subscription, expected: Position | None = None) -> Topics:
        """Return the existing partitions of the subscription, and the ids of their topics.

        A partition that is expected may be missing from an answer while its topic is created, or
        while a broker learns of it. It counts as deleted once it has been missing for a while.
        """
        give_up_s = time.monotonic() + GONE_PATIENCE_S
        while True:
            found = self._asked(lambda: self._described(subscription), "list its topics")
            if expected is None or time.monotonic() > give_up_s:
                return found
            wanted = expected.without(expected.recreated_topics(found.ids)).offsets
            if all(each in found.partitions or not covers(subscription, each) for each in wanted):
                return found
            self._pause()

    def earliest(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.earliest()))

    def latest(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions, for readers of this isolation level."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()))

    def at_times(self, times_ms: Offsets) -> dict[TopicPartition, int]:
        """Return the first offsets from a time on; -1 if nothing is that young."""
        return self._offsets(
            {place: OffsetSpec.for_timestamp(time_ms) for place, time_ms in times_ms.items()}
        )

    def commit_progress(self, group: str, offsets: Offsets) -> None:
        """Commit the progress to a group; a failure is logged and does not stop the query.

        If other consumers have committed offsets to the group, they will continue there, so the
        offsets stay unchanged.
        """
        positions = [
            ClientPartition(*place, offset, POSTED_BY) for place, offset in offsets.items()
        ]
        try:
            if "group.id" in self._settings.client and self._has_other_consumers(group):
                self._warn_once(
                    f"Group {group} holds offsets of other consumers, so the progress of this "
                    "query is not posted: leave kafka.group.id out, or name a group of its own"
                )
                return
            request = [ConsumerGroupTopicPartitions(group, positions)]
            futures = self._client.alter_consumer_group_offsets(
                request, request_timeout=POST_TIMEOUT_S
            )
            answers = futures[group].result().topic_partitions
            errors = {str(each.error) for each in answers if each.error is not None}
        except KafkaException as error:
            errors = {str(error)}
        for why in sorted(errors):
            log.warning("Committing the progress of group %s failed: %s", group, why)

    def _has_other_consumers(self, group: str) -> bool:
        asked = [ConsumerGroupTopicPartitions(group)]
        futures = self._client.list_consumer_group_offsets(asked, request_timeout=POST_TIMEOUT_S)
        committed = futures[group].result().topic_partitions
        return any(each.offset >= 0 and each.metadata != POSTED_BY for each in committed)

    @property
    def _client(self) -> AdminClient:
        if self._known_client is None:
            self._known_client = AdminClient(admin_properties(self._settings.client))
        return self._known_client

    def _described(self, subscription: Subscription) -> Topics:
        names = sorted(self._names(subscription))
        if not names:
            return Topics(frozenset(), {})
        futures = self._client.describe_topics(
            TopicCollection(names), request_timeout=self._timeout_s()
        )
        found = [each for each in map(_if_it_exists, futures.values()) if each is not None]
        places = frozenset(
            TopicPartition(each.name, part.id) for each in found for part in each.partitions
        )
        ids = {each.name: str(each.topic_id) for each in found if str(each.topic_id) != NO_ID}
        return Topics(frozenset(each for each in places if covers(subscription, each)), ids)

    def _names(self, subscription: Subscription) -> Iterable[str]:
        if isinstance(subscription, Assign):
            return {place.topic for place in subscription.partitions}
        if isinstance(subscription, Subscribe):
            return subscription.topics
        found = self._client.list_topics(timeout=self._timeout_s()).topics
        return [name for name in found if _matches(subscription.pattern, name)]

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
            request_timeout=self._timeout_s(),
        )
        return {
            TopicPartition(each.topic, each.partition): future.result().offset
            for each, future in futures.items()
        }

    def _asked(self, ask: Callable[[], T], what: str) -> T:
        """Ask until there is an answer, or the timeout of the read is over."""
        deadline_s = time.monotonic() + self._settings.patience_ms / 1000
        failures = 0
        while True:
            try:
                return ask()
            except KafkaException as error:
                problem = error.args[0]
                failures += problem.code() not in PASSING
                late = time.monotonic() > deadline_s
                if late or failures > self._settings.lookup_retries:
                    raise FetchError(self._complaint(what, problem, late=late)) from error
                self._warn_once(
                    f"The cluster at {self._bootstrap} could not {what}: {problem}; it is asked "
                    f"again for up to {self._settings.patience_ms / 1000:.0f} s"
                )
            # librdkafka would ask repeatedly with its cached leader epoch, and a broker that has
            # restarted refuses it each time.
            self._known_client = None
            self._pause()

    def _complaint(self, what: str, problem: KafkaError, *, late: bool) -> str:
        waited = f" for {self._settings.patience_ms / 1000:.0f} s" if late else ""
        advice = ", or raise the option kafkaConsumer.pollTimeoutMs" if late else ""
        return (
            f"The cluster at {self._bootstrap} could not {what}{waited}: {problem}; check the "
            f"address and the brokers' logs{advice}"
        )

    def _timeout_s(self) -> float:
        """How long one attempt may take: no longer than all of them together."""
        attempt_s = request_timeout_s(self._settings.client, LOOKUP_TIMEOUT_S)
        return max(LOOKUP_TIMEOUT_MIN_S, min(attempt_s, self._settings.patience_ms / 1000))

    def _pause(self) -> None:
        time.sleep(self._settings.lookup_pause_ms / 1000)

    def _warn_once(self, what: str) -> None:
        if what != self._last_warning:
            self._last_warning = what
            log.warning("%s", what)


def _if_it_exists(future: "Future[TopicDescription]") -> TopicDescription | None:
    """Return the description of a topic; None if there is no such topic."""
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def covers(subscription: Subscription, place: TopicPartition) -> bool:
    """Return whether a partition is part of the subscription."""
    if isinstance(subscription, Assign):
        return place in subscription.partitions
    if isinstance(subscription, Subscribe):
        return place.topic in subscription.topics
    return _matches(subscription.pattern, place.topic)


def _matches(pattern: str, topic: str) -> bool:
    return topic not in INTERNAL and re.fullmatch(pattern, topic) is not None


def admin_properties(client: Mapping[str, str]) -> dict[str, str | int]:
    """Return the properties that are not for consumers only."""
    kept = {k: v for k, v in client.items() if not k.startswith(CONSUMERS_ONLY)}
    paused = any(name.startswith("reconnect.backoff") for name in kept)
    pause = {} if paused else {"reconnect.backoff.max.ms": RECONNECT_MS_MAX}
    return {"log_level": 0, **pause, **kept}


def check_properties(client: Mapping[str, str]) -> None:
    """Refuse `kafka.*` options whose names or values librdkafka does not accept."""
    offline = {name: value for name, value in client.items() if name != BOOTSTRAP}
    try:
        Consumer({"log_level": 0, **offline, "group.id": "check"}).close()
    except KafkaException as error:
        raise OptionError(
            f"A kafka.* option is invalid: {error.args[0].str()}; correct it or leave it out. "
            "Names and values are librdkafka's: "
            "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md"
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
        raise OptionError(
            f"There is no topic or partition {', '.join(missing)}; "
            "create it first, or correct the name"
        )
