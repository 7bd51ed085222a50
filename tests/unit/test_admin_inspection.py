"""Tests what is asked of clusters that are not Barnabas: Apache Kafka, also before release 4."""

from typing import Any, cast

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.feature_levels import look_at_levels
from barnabas.admin.inspection import describe_cluster, feature_level
from barnabas.protocol.apis import KEYS
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from barnabas.wire.cluster_wire import Wire

BROKER = DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=9092)


class OtherCluster:
    """Answers as a cluster with given features, whose DescribeCluster has a given version."""

    def __init__(self, features: dict[str, int], describe_version: int = 2) -> None:
        self._features = features
        self._describe_version = describe_version

    def ask_any(self, request: Message, _: Any) -> Message:
        if isinstance(request, ApiVersionsRequest):
            features = [
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in self._features.items()
            ]
            return ApiVersionsResponse(finalized_features=features)
        assert KEYS[type(request).__name__] == KEYS["DescribeClusterRequest"]
        encoder(type(request), self._describe_version)(request)
        return DescribeClusterResponse(brokers=[BROKER])


def wire(features: dict[str, int], describe_version: int = 2) -> Wire:
    return cast("Wire", OtherCluster(features, describe_version))


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ({"transaction.version": 2}, 1),
        ({"transaction.version": 2, "barnabas.version": 2}, 2),
        ({"transaction.version": 2, "metadata.version": 29}, None),
    ],
    ids=["Barnabas 0.1.0", "Barnabas", "Apache Kafka"],
)
def test_only_barnabas_has_a_feature_level(features: dict[str, int], level: int | None) -> None:
    assert feature_level(wire(features)) == level


def test_an_upgrade_of_kafka_is_refused() -> None:
    with pytest.raises(AdminError, match=r"Apache Kafka.*kafka-features\.sh"):
        look_at_levels(wire({"metadata.version": 29}))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_brokers_are_listed_whether_or_not_fenced_ones_can_be_asked_for(version: int) -> None:
    assert describe_cluster(wire({}, version)).brokers == [BROKER]
