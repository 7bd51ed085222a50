"""Tests which feature levels an operator may request, and which brokers support them."""

import pytest

from barnabas.controller.feature_decisions import (
    FIRST_RELEASE,
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Levels,
    check_levels,
    check_registration,
    levels_of,
    wanted_level,
)
from barnabas.metadata.features import FEATURE, LATEST_LEVEL, SHARE_FEATURE, TRANSACTION_FEATURE
from barnabas.metadata.image import Image
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from barnabas.protocol.messages.update_features import FeatureUpdateKey

UNKNOWN_TYPE = 9


def update(level: int, name: str = FEATURE, kind: int = UPGRADE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)


def test_the_level_rises() -> None:
    assert wanted_level(Image(), [update(2)]) == 2


def test_the_level_it_has_changes_nothing() -> None:
    assert wanted_level(Image(feature_level=2), [update(2)]) == 2
    assert wanted_level(Image(), [update(2, TRANSACTION_FEATURE)]) == 1


def test_other_features_follow_from_the_level() -> None:
    share = update(1, SHARE_FEATURE)
    with pytest.raises(ApiError, match="its level follows from that of"):
        wanted_level(Image(feature_level=1), [share])
    assert wanted_level(Image(feature_level=1), [share, update(2)]) == 2
    assert wanted_level(Image(feature_level=2), [share]) == 2


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (update(LATEST_LEVEL + 1), "the controller knows levels 1 to 2"),
        (update(1), "cannot be lowered"),
        (update(1, kind=SAFE_DOWNGRADE), "cannot be lowered"),
        (update(0, kind=UNSAFE_DOWNGRADE), "cannot be lowered"),
        (update(3, kind=SAFE_DOWNGRADE), "not a downgrade"),
        (update(2, kind=UNKNOWN_TYPE), "9 is not a type of upgrade"),
        (update(1, "metadata.version"), "there is no such feature"),
        (update(3, TRANSACTION_FEATURE), "the controller knows levels 0 to 2"),
        (update(1, TRANSACTION_FEATURE, SAFE_DOWNGRADE), "cannot be lowered"),
    ],
)
def test_what_may_not_be(wanted: FeatureUpdateKey, says: str) -> None:
    with pytest.raises(ApiError, match=says) as refused:
        wanted_level(Image(feature_level=2), [wanted])
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_a_request_that_names_no_feature_changes_nothing() -> None:
    assert wanted_level(Image(feature_level=1), []) == 1


def test_a_request_names_each_feature_once() -> None:
    with pytest.raises(ApiError) as refused:
        wanted_level(Image(), [update(2), update(2)])
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_every_node_must_know_the_level() -> None:
    check_levels(2, {1: Levels(1, 2), 2: Levels(2, 3)})
    with pytest.raises(ApiError, match=r"node 2 knows level 1.*Upgrade them first") as refused:
        check_levels(2, {1: Levels(1, 2), 2: FIRST_RELEASE})
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_a_node_without_a_level_is_not_considered_new() -> None:
    with pytest.raises(ApiError, match="node 3 is not running") as refused:
        check_levels(2, {1: Levels(1, 2), 2: FIRST_RELEASE, 3: "is not running"})
    assert refused.value.code is ErrorCode.FEATURE_UPDATE_FAILED


def test_a_broker_says_which_levels_it_knows() -> None:
    known = SupportedFeatureKey(name=FEATURE, min_version=1, max_version=5)
    assert levels_of(ApiVersionsResponse(supported_features=[known])) == Levels(1, 5)
    assert levels_of(ApiVersionsResponse()) == FIRST_RELEASE


def test_a_broker_registers_where_it_knows_the_level() -> None:
    old = BrokerRegistrationRequest(broker_id=4)
    today = Feature(name=FEATURE, min_supported_version=1, max_supported_version=2)
    new = BrokerRegistrationRequest(broker_id=5, features=[today])
    for request in (old, new):
        check_registration(Image(), request)
    check_registration(Image(feature_level=2), new)
    with pytest.raises(ApiError, match="broker 4 knows level 1") as refused:
        check_registration(Image(feature_level=2), old)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(ApiError, match="broker 5 knows levels 1 to 2"):
        check_registration(Image(feature_level=3), new)
