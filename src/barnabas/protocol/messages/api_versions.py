"""ApiVersionsRequest and ApiVersionsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ApiVersionsRequest(Message):
    """Api versions request, versions 0-4, flexible from 3."""

    __slots__ = (
        "client_software_name",
        "client_software_version",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "client_software_name string 3+ ignorable",
        "client_software_version string 3+ ignorable",
    )

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Message):
    """Part of ApiVersionsResponse."""

    __slots__ = (
        "api_key",
        "min_version",
        "max_version",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "api_key int16 0+",
        "min_version int16 0+",
        "max_version int16 0+",
    )

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    """Part of ApiVersionsResponse."""

    __slots__ = (
        "name",
        "min_version",
        "max_version",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 3+",
        "min_version int16 3+",
        "max_version int16 3+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    """Part of ApiVersionsResponse."""

    __slots__ = (
        "name",
        "max_version_level",
        "min_version_level",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 3+",
        "max_version_level int16 3+",
        "min_version_level int16 3+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    """Api versions response, versions 0-4, flexible from 3."""

    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "error_code int16 0+",
        "api_keys []ApiVersion 0+",
        "throttle_time_ms int32 1+ ignorable",
        "supported_features []SupportedFeatureKey 3+ tag=0 tagged=3+ ignorable",
        "finalized_features_epoch int64 3+ default=-1 tag=1 tagged=3+ ignorable",
        "finalized_features []FinalizedFeatureKey 3+ tag=2 tagged=3+ ignorable",
        "zk_migration_ready bool 3+ tag=3 tagged=3+ ignorable",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = FRESH,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = FRESH,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = FRESH,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is FRESH else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is FRESH else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is FRESH else finalized_features
        self.zk_migration_ready = zk_migration_ready
