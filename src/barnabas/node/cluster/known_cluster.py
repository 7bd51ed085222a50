"""The state of the cluster as this broker knows it, worked out a little at a time.

Partitions and brokers are in the metadata that every broker has. Which voters are in contact only
the controller knows, so it is asked.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.controller.topic_rules import rules_of
from barnabas.health.cluster_facts import FENCED, UP, Broker, Overview, Partitions, Place, Quorum
from barnabas.health.described_quorum import quorum_of
from barnabas.health.restart_gate import RestartSafety
from barnabas.metadata.image import NO_LEADER, Image, PartitionImage, TopicImage
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

METADATA_TOPIC = "__cluster_metadata"
LANE = "health"
PATIENCE_MS = 2_000
PARTITIONS_AT_ONCE = 200

Looking = Generator[Pending[Any] | None, Any, Any]


class ViewHost(Protocol):
    """What is asked of the broker."""

    @property
    def node_id(self) -> NodeId:
        """This broker."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    @property
    def controller_id(self) -> NodeId | None:
        """The active controller, as far as this broker knows."""

    @property
    def settings(self) -> Settings:
        """The settings of this broker."""

    @property
    def topic_defaults(self) -> dict[str, str]:
        """The configs that topics inherit."""

    @property
    def timers(self) -> Timers:
        """The clocks."""

    @property
    def disk(self) -> Disk:
        """The disk with the data."""

    @property
    def peers(self) -> BrokerRequests:
        """Sends requests to brokers."""


class _Known(NamedTuple):
    """One partition and what its topic asks of it."""

    place: Place
    placed: PartitionImage
    min_isr: int
    factor: int


def ask_quorum(host: ViewHost) -> Generator[Pending[Any] | None, Any, Quorum | None]:
    """Ask the controller for the quorum; return None where it does not answer."""
    controller = host.controller_id
    if controller is None:
        return None
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    answer = yield host.peers.ask(controller, request, lane=LANE, timeout_ms=PATIENCE_MS)
    if not isinstance(answer, DescribeQuorumResponse) or answer.error_code or not answer.topics:
        return None
    described = answer.topics[0].partitions[0]
    if described.error_code:
        return None
    addresses = {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}"
        for node in answer.nodes
        if node.listeners
    }
    return quorum_of(described, addresses, host.timers.wall_ms)


def overview_of(host: ViewHost) -> Generator[Pending[Any] | None, Any, Overview]:
    """Return the state of the cluster."""
    quorum = yield from ask_quorum(host)
    image = host.image
    found = _Found(len(image.brokers))
    for known in _partitions(host, image):
        if known is None:
            yield None
        else:
            found.add(known)
    return Overview(
        cluster_id=image.cluster_id,
        brokers=[found.broker(host, image, number) for number in sorted(image.brokers)],
        quorum=quorum,
        partitions=found.partitions(),
        troubles=[],
        feature_level=image.feature_level,
    )


def restart_reasons(host: ViewHost) -> Generator[Pending[Any] | None, Any, list[str]]:
    """Return why this broker should not be stopped now."""
    quorum = yield from ask_quorum(host)
    image = host.image
    safety = RestartSafety(host.node_id)
    for known in _partitions(host, image):
        if known is None:
            yield None
        else:
            placed = known.placed
            active = [n for n in placed.isr if n == host.node_id or image.is_active(n)]
            safety.add(known.place, placed.replicas, active, known.min_isr)
    return safety.reasons(quorum)


def _partitions(host: ViewHost, image: Image) -> Generator[_Known | None, None, None]:
    """Yield every partition, and None now and then, to go on in a later event."""
    defaults, count = host.topic_defaults, 0
    for topic in sorted(image.topics.values(), key=lambda each: each.name):
        min_isr, factor = rules_of(topic, defaults).min_insync, _wanted_factor(host, topic)
        for number, placed in enumerate(topic.partitions):
            yield _Known((topic.name, number), placed, min_isr, factor)
            count += 1
            if count % PARTITIONS_AT_ONCE == 0:
                yield None


def _wanted_factor(host: ViewHost, topic: TopicImage) -> int:
    own = host.settings.replication.internal_replication_factor if topic.is_internal else 0
    return max(topic.replication_factor, own)


class _Found:
    """All partitions, grouped by problem."""

    def __init__(self, brokers: int) -> None:
        self._brokers = brokers
        self._total = 0
        self._places: dict[str, list[Place]] = {}
        self._leaders: Counter[int] = Counter()
        self._replicas: Counter[int] = Counter()
        self._in_sync: Counter[int] = Counter()

    def add(self, known: _Known) -> None:
        """Take in a partition."""
        placed = known.placed
        self._total += 1
        self._leaders[placed.leader] += 1
        self._replicas.update(placed.replicas)
        self._in_sync.update(placed.isr)
        for problem, has_it in self._problems(known).items():
            if has_it:
                self._places.setdefault(problem, []).append(known.place)

    def _problems(self, known: _Known) -> Mapping[str, bool]:
        placed = known.placed
        expected = set(placed.replicas) - set(placed.adding)
        least, moving = min(known.min_isr, len(expected)), bool(placed.adding or placed.removing)
        return {
            "under_replicated": not expected <= set(placed.isr),
            "under_min_isr": len(placed.isr) < least,
            "at_min_isr": len(expected) > 1 and len(placed.isr) == least,
            "replicas_at_min_isr": 1 < len(expected) <= known.min_isr,
            "below_replication_factor": len(expected) < min(known.factor, self._brokers),
            "offline": placed.leader == NO_LEADER,
            "reassigning": moving,
            "not_led_as_preferred": (
                not moving and placed.leader not in (NO_LEADER, placed.replicas[0])
            ),
        }

    def partitions(self) -> Partitions:
        """Return the groups."""

        def those(problem: str) -> list[Place]:
            return self._places.get(problem, [])

        return Partitions(
            total=self._total,
            under_replicated=those("under_replicated"),
            under_min_isr=those("under_min_isr"),
            at_min_isr=those("at_min_isr"),
            replicas_at_min_isr=those("replicas_at_min_isr"),
            below_replication_factor=those("below_replication_factor"),
            offline=those("offline"),
            reassigning=those("reassigning"),
            not_led_as_preferred=those("not_led_as_preferred"),
        )

    def broker(self, host: ViewHost, image: Image, number: int) -> Broker:
        """Return a broker; only of this one the disk is known."""
        known = image.brokers[number]
        return Broker(
            id=number,
            address=f"{known.host}:{known.port}",
            rack=known.rack,
            state=FENCED if known.fenced else UP,
            silence=None,
            leaders=self._leaders[number],
            replicas=self._replicas[number],
            in_sync=self._in_sync[number],
            disk_free=_disk_free(host) if number == host.node_id else None,
        )


def _disk_free(host: ViewHost) -> float | None:
    try:
        total, free = host.disk.space(host.settings.broker.data_dir)
    except OSError:
        return None
    return free / total if total else None
