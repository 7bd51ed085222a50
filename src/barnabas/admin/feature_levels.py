"""Query and raise the feature level of a cluster, and the levels that its brokers support."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.inspection import (
    CLIENT_ID,
    LOOK_TIMEOUT_S,
    describe_cluster,
    feature_level,
    versions_request,
)
from barnabas.controller.feature_decisions import FIRST_RELEASE, UPGRADE, Levels, levels_of
from barnabas.metadata.features import FEATURE
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster import DescribeClusterBroker
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.wire.cluster_wire import NOT_YET, Wire, settled
from barnabas.wire.link import Link
from barnabas.wire.wire_failures import LinkError

STOPPED = "it is not running"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLevels:
    """A broker, and the levels that it supports."""

    id: int
    address: str
    levels: Levels | None
    problem: str | None = None
    """Why the broker's levels are unknown."""

    def shown(self) -> str:
        """Return the levels as text."""
        if self.levels is None:
            return self.problem or "unknown"
        old = " (release 0.1.0)" if self.levels == FIRST_RELEASE else ""
        return f"{self.levels}{old}"

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        low, high = self.levels or (None, None)
        return {
            "id": self.id,
            "address": self.address,
            "lowest_level": low,
            "highest_level": high,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLevels:
    """A cluster's level, and the levels that its brokers support."""

    level: int
    brokers: Sequence[BrokerLevels]

    @property
    def goal(self) -> int:
        """The highest level that any broker supports."""
        return max((each.levels.high for each in self.brokers if each.levels), default=self.level)

    @property
    def missing(self) -> list[BrokerLevels]:
        """The brokers that do not support that level."""
        return [
            each for each in self.brokers if each.levels is None or each.levels.high < self.goal
        ]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "level": self.level,
            "goal": self.goal,
            "ready": not self.missing,
            "brokers": [each.as_json() for each in self.brokers],
        }


def look_at_levels(wire: Wire) -> ClusterLevels:
    """Ask every registered broker which levels it supports."""
    cluster = describe_cluster(wire)
    brokers = sorted(cluster.brokers, key=lambda each: each.broker_id)
    level = feature_level(wire)
    if level is None:
        raise AdminError(
            "This cluster is Apache Kafka, which has no feature level of Barnabas; upgrade it with "
            "its own tool kafka-features.sh"
        )
    return ClusterLevels(level=level, brokers=[_ask(wire, each) for each in brokers])


def raise_level(wire: Wire, level: int) -> None:
    """Ask the controller to raise the level."""
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=UPGRADE)
    request = UpdateFeaturesRequest(feature_updates=[update])

    def ask() -> tuple[int, None]:
        answer = wire.ask_any(request, UpdateFeaturesResponse)
        if answer.error_code not in (ErrorCode.NONE, *NOT_YET):
            raise AdminError(f"The level was not raised: {answer.error_message}")
        return answer.error_code, None

    settled(ask, "The level was not raised")


def _ask(wire: Wire, broker: DescribeClusterBroker) -> BrokerLevels:
    address = f"{broker.host}:{broker.port}"
    if broker.is_fenced:
        return BrokerLevels(id=broker.broker_id, address=address, levels=None, problem=STOPPED)
    try:
        link = Link(broker.host, broker.port, CLIENT_ID, LOOK_TIMEOUT_S, wire.security)
        try:
            found = levels_of(link.ask(versions_request(), ApiVersionsResponse))
        finally:
            link.close()
    except (OSError, LinkError) as error:
        return BrokerLevels(id=broker.broker_id, address=address, levels=None, problem=str(error))
    return BrokerLevels(id=broker.broker_id, address=address, levels=found)
