"""Creates topics that a broker itself needs: as the controller, or by asking the controller.

Such a topic is created even while brokers are down, with as many replicas as there are brokers for.
From feature level 2 on, its replication factor is recorded with it, and the controller adds the
missing replicas when brokers are back (`controller/growth.py`). The controller gets that number
from a config of the request, `barnabas.replication.factor`. A CreateTopics request without it comes
from a client, and is refused if brokers are missing.

The answer waits until the topic is in the image of this broker, so that the next request about it
finds it.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from barnabas.controller import topic_decisions
from barnabas.controller.growth import Factor, factor_for
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import Peers
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

PATIENCE_MS = 5_000
NOT_PROBLEMS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class CreationHost(Protocol):
    """What the creation of topics needs from the broker."""

    @property
    def is_alone(self) -> bool:
        """Whether this node is a cluster by itself."""

    @property
    def brokers(self) -> Sequence[BrokerImage]:
        """The brokers that clients can connect to."""

    @property
    def topic_defaults(self) -> dict[str, str]:
        """The configs that topics inherit."""

    def settled_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a new topic's config with the values that all brokers must share."""

    def place(self, partitions: int, copies: int) -> list[list[int]]:
        """Choose the brokers of new partitions."""

    def check_room(self, partitions: int) -> None:
        """Refuse partitions for which there would not be enough open files."""

    def commit(self, changes: Sequence[MetadataRecord], now_ms: int) -> Pending[None]:
        """Write metadata."""


class Creation:
    """Creates topics, and keeps the requests that wait until a topic is in the metadata."""

    def __init__(
        self, host: CreationHost, quorum: Quorum, peers: Peers, timers: Timers, rng: Random
    ) -> None:
        self._host = host
        self._quorum = quorum
        self._peers = peers
        self._timers = timers
        self._rng = rng
        self._expected: dict[str, list[Pending[None]]] = {}

    def create(
        self, name: str, partitions: int, copies: int, config: Mapping[str, str], now_ms: int
    ) -> Pending[None]:
        """Create a topic with a replication factor; answer once it is in the metadata here.

        Raises `ApiError`, or fails with it, if it is refused.
        """
        if self._quorum.is_controller:
            return self._decide(name, partitions, copies, config, now_ms)
        controller = self._quorum.controller_id
        if controller is None:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "there is no controller for now")
        factor = min(copies, max(1, len(self._host.brokers)))
        if self.remembers_factors:
            factor, config = copies, {**config, WANTED_FACTOR: str(copies)}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in config.items()],
        )
        known = self._expect(name)
        asked = self._peers.ask(controller, CreateTopicsRequest(topics=[topic]))
        asked.when_done(lambda answer: self._answered(name, answer), lambda e: self._fail(name, e))
        return known

    @property
    def remembers_factors(self) -> bool:
        """Whether the controller adds replicas later that a topic cannot have yet."""
        level = self._quorum.image.feature_level
        return not self._host.is_alone and level >= WANTED_FACTOR_LEVEL

    def factor(self, copies: int) -> Factor:
        """Return how many replicas a topic gets now, and its replication factor."""
        found = factor_for(self._quorum.require_draft(), copies)
        return found._replace(wanted=0) if self._host.is_alone else found

    def metadata_changed(self) -> None:
        """Answer requests whose topics are in the metadata now."""
        for name in [name for name in self._expected if name in self._quorum.image.topics]:
            for known in self._expected.pop(name):
                known.complete(None)

    def _decide(
        self, name: str, partitions: int, copies: int, config: Mapping[str, str], now_ms: int
    ) -> Pending[None]:
        host, draft = self._host, self._quorum.require_draft()
        if name in draft.topics:  # another client asked for it a moment ago
            return host.commit((), now_ms)
        host.check_room(partitions)
        factor = self.factor(copies)
        record = topic_decisions.create_topic(
            draft,
            name,
            host.place(partitions, factor.placed),
            host.settled_config(config),
            host.topic_defaults,
            self._rng,
            replication_factor=factor.wanted,
        )
        return host.commit([record], now_ms)

    def _expect(self, name: str) -> Pending[None]:
        known: Pending[None] = Pending()
        self._expected.setdefault(name, []).append(known)

        def give_up() -> None:
            waiting = self._expected.get(name, [])
            if known in waiting:
                waiting.remove(known)
                late = "the topic is being made, and not known here yet"
                known.fail(ApiError(ErrorCode.LEADER_NOT_AVAILABLE, late))

        self._timers.after(PATIENCE_MS, give_up)
        return known

    def _answered(self, name: str, answer: CreateTopicsResponse) -> None:
        (result,) = answer.topics
        code = ErrorCode(result.error_code)
        if code not in NOT_PROBLEMS:
            self._fail(name, ApiError(code, result.error_message or code.name))

    def _fail(self, name: str, error: Exception) -> None:
        for known in self._expected.pop(name, ()):
            refused = error if isinstance(error, ApiError) else None
            known.fail(refused or ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)))
