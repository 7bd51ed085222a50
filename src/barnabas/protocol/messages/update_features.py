"""UpdateFeaturesRequest and UpdateFeaturesResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class FeatureUpdateKey(Message):
    """Part of UpdateFeaturesRequest."""

    __slots__ = (
        "feature",
        "max_version_level",
        "allow_downgrade",
        "upgrade_type",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "feature string 0+",
        "max_version_level int16 0+",
        "allow_downgrade bool 0",
        "upgrade_type int8 1+ default=1",
    )

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Message):
    """Update features request, versions 0-2, flexible from 0."""

    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "timeout_ms int32 0+ default=60000",
        "feature_updates []FeatureUpdateKey 0+",
        "validate_only bool 1+",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = FRESH,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is FRESH else feature_updates
        self.validate_only = validate_only


class UpdatableFeatureResult(Message):
    """Part of UpdateFeaturesResponse."""

    __slots__ = (
        "feature",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "feature string 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Message):
    """Update features response, versions 0-2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "results []UpdatableFeatureResult 0-1 ignorable",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is FRESH else results
