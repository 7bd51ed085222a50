"""The internal topic of one kind of coordinator: creates it when a client first needs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.metadata.image import Image
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings

SAFE_REPLICAS = 3
"""With this many replicas every write must be in two of them, so that losing either leaves one."""


class TopicMaker(Protocol):
    """What the creation of an internal topic needs from the broker."""

    @property
    def settings(self) -> Settings:
        """The broker's settings."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    @property
    def nodes(self) -> Sequence[NodeId]:
        """The live brokers."""

    @property
    def remembers_factors(self) -> bool:
        """Whether the controller adds the missing replicas of a topic later."""

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


class StateTopic:
    """Creates one internal topic, once for all clients that ask at the same time."""

    def __init__(
        self, maker: TopicMaker, name: str, partitions: int, config: Mapping[str, str]
    ) -> None:
        self._maker = maker
        self._name = name
        self._partitions = partitions
        self._config = config
        self._waiting: list[Pending[None]] = []

    def ensure(self, now_ms: int) -> Pending[None]:
        """Create the topic if it does not exist; answer once the metadata has it.

        Raises `ApiError` if it cannot be created, or the answer fails with it.
        """
        ready: Pending[None] = Pending()
        if not self._waiting and self._name in self._maker.image.topics:
            ready.complete(None)
            return ready
        self._waiting.append(ready)
        if len(self._waiting) == 1:
            try:
                created = self._create(now_ms)
            except ApiError:
                self._waiting.clear()
                raise
            created.when_done(self._created, self._failed)
        return ready

    def _create(self, now_ms: int) -> Pending[None]:
        maker = self._maker
        live, cluster = len(maker.nodes), maker.settings.cluster
        # A topic that is created too early would stay on the first brokers forever.
        if cluster.roles == "both" and live <= len(cluster.voters) // 2:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too few brokers are up")
        replicas = maker.settings.replication.internal_replication_factor
        eventual_brokers = live
        if maker.remembers_factors:  # brokers that are down count: they get replicas later
            voters = len(cluster.voters) if cluster.roles == "both" else 0
            eventual_brokers = max(len(maker.image.brokers), voters)
        else:
            replicas = min(replicas, live)
        config = dict(self._config)
        if min(replicas, eventual_brokers) >= SAFE_REPLICAS:
            config["min.insync.replicas"] = str(SAFE_REPLICAS - 1)
        return maker.ensure_topic(
            self._name, self._partitions, config, now_ms, replication_factor=replicas
        )

    def _created(self, _: None) -> None:
        self._answer(lambda ready: ready.complete(None))

    def _failed(self, error: Exception) -> None:
        refusal = error
        if not isinstance(error, ApiError):
            refusal = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        self._answer(lambda ready: ready.fail(refusal))

    def _answer(self, answer: Callable[[Pending[None]], None]) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            answer(ready)
