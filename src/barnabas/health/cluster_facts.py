"""The state of a cluster at one moment: what a verdict is made of.

Tools put it together from the responses of brokers (`admin/cluster_overview.py`), a broker from the
metadata that it has (`node/cluster/known_cluster.py`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from barnabas.health.quorum_margin import Votes, votes

Place = tuple[str, int]
"""A topic and the number of a partition."""

UP = "up"
FENCED = "fenced"
"""The controller gets no heartbeats from it; other brokers lead its partitions."""
SILENT = "silent"
"""It does not answer us, but the controller still considers it alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The state of a broker, from the controller and its partitions."""

    id: int
    address: str
    rack: str | None
    state: str
    silence: str | None
    """Why it does not answer, if it does not."""
    leaders: int
    replicas: int
    in_sync: int
    disk_free: float | None
    """The free share of its fullest disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A voter or observer of the metadata quorum."""

    id: int
    directory: bytes
    lag: int | None
    """Records behind the leader; None if it has not fetched since the leader's election."""
    last_contact_ms: int | None

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {"id": self.id, "lag": self.lag, "last_contact_ms": self.last_contact_ms}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The metadata quorum."""

    leader: int | None
    epoch: int
    high_watermark: int
    voters: list[Member]
    observers: list[Member]
    addresses: Mapping[int, str]
    """The inter-broker addresses of voters, by node id."""

    @property
    def votes(self) -> Votes:
        """Which voters count, and which brokers could become voters."""
        return votes(self.voters, self.observers)

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "leader": self.leader,
            "epoch": self.epoch,
            "high_watermark": self.high_watermark,
            "voters": [each.as_json() for each in self.voters],
            "observers": [each.as_json() for each in self.observers],
            "votes": self.votes.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """All partitions, grouped by problem."""

    total: int
    under_replicated: list[Place]
    under_min_isr: list[Place]
    at_min_isr: list[Place]
    """Exactly min.insync.replicas in sync: with one less, acks=all is rejected (as in Kafka)."""
    replicas_at_min_isr: list[Place]
    """More than one replica, but at most min.insync.replicas: no broker may be down."""
    below_replication_factor: list[Place]
    """Fewer replicas than the topic should have, and fewer than there are brokers."""
    offline: list[Place]
    reassigning: list[Place]
    not_led_as_preferred: list[Place]

    def as_json(self) -> dict[str, object]:
        """Return counts and lists as a JSON object."""
        named = asdict(self) | {"total": self.total}
        return {
            key: value if key == "total" else [f"{topic}-{number}" for topic, number in value]
            for key, value in named.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of a cluster at one moment."""

    cluster_id: str
    brokers: list[Broker]
    quorum: Quorum | None
    partitions: Partitions
    troubles: list[str]
    feature_level: int | None = None
    """The feature level of the cluster; None if it was not requested."""

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        quorum = self.quorum
        return {
            "cluster_id": self.cluster_id,
            "feature_level": self.feature_level,
            "controller": None if quorum is None else quorum.leader,
            "brokers": [asdict(each) for each in self.brokers],
            "quorum": None if quorum is None else quorum.as_json(),
            "partitions": self.partitions.as_json(),
        }
