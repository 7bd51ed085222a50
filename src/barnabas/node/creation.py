"""Topics that a broker needs made: by itself where it controls, else by asking who does.

Such a topic is made even while brokers are down, with as many replicas as there are brokers for.
How many it is to have is recorded with it, from feature level 2 on, and the controller adds the
rest when brokers are back (`controller/growth.py`). The controller learns of that number from a
config of the request, `barnabas.replication.factor`: a CreateTopics request without it is a
client's, and is refused where brokers are missing.

Whoever asked waits until the topic is in the image here, so that the next question about it is
answered with what was made.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.controller import topics as topic_decisions
from barnabas.controller.growth import Factor, factor_for
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.node.node import Node

PATIENCE_MS = 5_000
NOT_PROBLEMS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class Creation:
    """Topics on their way into being."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._expected: dict[str, list[Pending[None]]] = {}

    def create(
        self, name: str, partitions: int, copies: int, config: Mapping[str, str], now_ms: int
    ) -> Pending[None]:
        """Make a topic that is to have so many copies; answer once it is known here.

        Raises `ApiError`, or fails with it, where it is refused.
        """
        node = self._node
        if node.is_controller:
            return self._decide(name, partitions, copies, config, now_ms)
        controller = node.controller_id
        if controller is None:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "there is no controller for now")
        factor = min(copies, max(1, len(node.brokers)))
        if self.remembers_factors:
            factor, config = copies, {**config, WANTED_FACTOR: str(copies)}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in config.items()],
        )
        known = self._expect(name)
        asked = node.peers.ask(controller, CreateTopicsRequest(topics=[topic]))
        asked.when_done(lambda answer: self._answered(name, answer), lambda e: self._fail(name, e))
        return known

    @property
    def remembers_factors(self) -> bool:
        """Whether a topic that gets fewer copies than it is to have gets the rest later."""
        node = self._node
        return not node.is_alone and node.image.feature_level >= WANTED_FACTOR_LEVEL

    def factor(self, copies: int) -> Factor:
        """Return with how many copies a topic is made now, and how many it is to have."""
        found = factor_for(self._node.draft, copies)
        return found._replace(wanted=0) if self._node.is_alone else found

    def metadata_changed(self) -> None:
        """Answer those whose topics are there now."""
        for name in [name for name in self._expected if name in self._node.image.topics]:
            for known in self._expected.pop(name):
                known.complete(None)

    def _decide(
        self, name: str, partitions: int, copies: int, config: Mapping[str, str], now_ms: int
    ) -> Pending[None]:
        node = self._node
        if name in node.draft.topics:  # somebody else asked for it a moment ago
            return node.commit((), now_ms)
        node.check_room(partitions)
        factor = self.factor(copies)
        record = topic_decisions.create_topic(
            node.draft,
            name,
            node.place(partitions, factor.placed),
            node.settled_config(config),
            node.topic_defaults,
            node.rng,
            replication_factor=factor.wanted,
        )
        return node.commit([record], now_ms)

    def _expect(self, name: str) -> Pending[None]:
        known: Pending[None] = Pending()
        self._expected.setdefault(name, []).append(known)

        def give_up() -> None:
            waiting = self._expected.get(name, [])
            if known in waiting:
                waiting.remove(known)
                late = "the topic is being made, and not known here yet"
                known.fail(ApiError(ErrorCode.LEADER_NOT_AVAILABLE, late))

        self._node.timers.after(PATIENCE_MS, give_up)
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
