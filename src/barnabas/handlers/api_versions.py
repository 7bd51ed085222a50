"""ApiVersions (key 18), versions 0 to 4.

An unsupported version is answered in version 0 with error 35 and the real range (KIP-511). From
version 3 on the client names its software; names that are not names are refused as in Kafka.

From version 3 on the answer tells which features the cluster has agreed on. Java producers speak
transaction version 2 where it is one of them.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.headers import API_VERSIONS
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

NAMES_FROM = 3
MINIMUM_ZERO_FROM = 4
"""Before it, clients fail on a feature whose lowest level is 0, so it is left out (KAFKA-17492)."""
FEATURES_EPOCH = 0
"""How often the cluster has agreed anew; clients take no features from an epoch below 0."""

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class Feature(NamedTuple):
    """What a cluster agrees on: the levels that this broker knows, and the one in use."""

    low: int
    high: int
    level: int


FEATURES = {
    "transaction.version": Feature(0, 2, 2),
}


class ApiVersionsHandler:
    """Knows what is served; the registry tells it."""

    def __init__(self, served: Mapping[int, tuple[int, int]]) -> None:
        self._keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(served.items())
        ]

    def handle(
        self, _: Node, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        """List what is served."""
        if context.version >= NAMES_FROM:
            named = (request.client_software_name, request.client_software_version)
            if not all(SOFTWARE_NAME.fullmatch(name) for name in named):
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(
            api_keys=self._keys,
            supported_features=_supported(context.version),
            finalized_features_epoch=FEATURES_EPOCH,
            finalized_features=_finalized(),
        )

    def unsupported(self) -> ApiVersionsResponse:
        """Answer a version from the future with the versions of this API (KIP-511)."""
        own = [key for key in self._keys if key.api_key == API_VERSIONS]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _supported(version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=feature.low, max_version=feature.high)
        for name, feature in FEATURES.items()
        if feature.low > 0 or version >= MINIMUM_ZERO_FROM
    ]


def _finalized() -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(
            name=name, max_version_level=feature.level, min_version_level=feature.level
        )
        for name, feature in FEATURES.items()
    ]
