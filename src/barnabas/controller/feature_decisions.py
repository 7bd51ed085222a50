"""Decides on changes of the feature level (UpdateFeatures, key 57; KIP-584, KIP-1022).

The level may rise when every registered broker and every voter supports the new one. It is never
lowered: brokers of a lower level may not be able to read records that were written since.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.metadata.features import FEATURE, FIRST_LEVEL, Feature, features_at
from barnabas.metadata.image import Image
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Levels(NamedTuple):
    """The range of feature levels that a broker supports."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"level {self.low}" if self.low == self.high else f"levels {self.low} to {self.high}"


FIRST_RELEASE = Levels(FIRST_LEVEL, FIRST_LEVEL)
"""A broker that names no levels runs the release before feature levels."""


def wanted_level(image: Image, updates: Sequence[FeatureUpdateKey]) -> int:
    """Return the feature level that a request asks for; raise `ApiError` if it is invalid."""
    names = [each.feature for each in updates]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a request must name each feature once")
    features = features_at(image.feature_level)
    for each in updates:
        known = features.get(each.feature)
        if known is None:
            raise _invalid(each, f"there is no such feature; there are {', '.join(features)}")
        _check_direction(each, known)
        if not known.low <= each.max_version_level <= known.high:
            levels = Levels(known.low, known.high)
            raise _invalid(each, f"the controller knows {levels}")
    wanted = {each.feature: each.max_version_level for each in updates}
    level = wanted.get(FEATURE, image.feature_level)
    after = features_at(level)
    for each in updates:
        if each.feature != FEATURE and each.max_version_level != after[each.feature].level:
            raise _invalid(each, f"its level follows from that of {FEATURE}; raise that")
    return level


def _check_direction(update: FeatureUpdateKey, known: Feature) -> None:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, f"{update.upgrade_type} is not a type of upgrade")
    if update.max_version_level > known.level and update.upgrade_type != UPGRADE:
        raise _invalid(update, f"the level is {known.level}, so this is not a downgrade")
    if update.max_version_level < known.level:
        raise _invalid(
            update,
            f"the level is {known.level} and cannot be lowered: brokers of an older release may "
            "not be able to read what has been written since",
        )


def check_levels(level: int, known: Mapping[int, Levels | str]) -> None:
    """Raise `ApiError` with the nodes that do not support a level, or have not answered."""
    silent = [f"node {node} {what}" for node, what in known.items() if isinstance(what, str)]
    if silent:
        raise ApiError(
            ErrorCode.FEATURE_UPDATE_FAILED,
            f"it is not known whether all brokers know level {level}: {'; '.join(silent)}. Start "
            "each, or take it out of the cluster with `barnabas cluster remove`",
        )
    missing = [
        f"node {node} knows {levels}"
        for node, levels in known.items()
        if isinstance(levels, Levels) and not levels.low <= level <= levels.high
    ]
    if missing:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"not all brokers know level {level}: {'; '.join(missing)}. Upgrade them first",
        )


def check_registration(image: Image, request: BrokerRegistrationRequest) -> None:
    """Raise `ApiError` if a broker does not support the cluster's level."""
    named = {
        each.name: Levels(each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    levels = named.get(FEATURE, FIRST_RELEASE)
    if not levels.low <= image.feature_level <= levels.high:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"broker {request.broker_id} knows {levels}, and the cluster's feature level is "
            f"{image.feature_level}. Install on it the release that the other brokers run",
        )


def levels_of(answer: ApiVersionsResponse) -> Levels:
    """Return the levels that a broker supports, from its ApiVersions response."""
    for each in answer.supported_features:
        if each.name == FEATURE:
            return Levels(each.min_version, each.max_version)
    return FIRST_RELEASE


def _invalid(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"{update.feature} cannot be set to level {update.max_version_level}: {reason}",
    )
