"""ApiVersions (key 18), versions 0 to 4.

An unsupported version is answered in version 0 with error 35 and the real range (KIP-511). From
version 3 on the client names its software; invalid names are refused as in Kafka.

From version 3 on the response lists the finalized features of the cluster. Java producers use
transaction version 2 if it is one of them. `barnabas.version` is the cluster's feature level
(`metadata/features.py`). Their epoch is the end of the metadata that this broker has read.

The response to another broker also lists the APIs that only brokers may call.
"""

import re
from collections.abc import Mapping

from barnabas.handlers.context import RequestContext
from barnabas.metadata.features import FIRST_LEVEL, features_at
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.headers import API_VERSIONS
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""Clients begin to push metrics where these are listed: they are if the broker takes metrics."""
NAMES_FROM = 3
MINIMUM_ZERO_FROM = 4
"""Clients of earlier versions fail on a feature whose lowest level is 0, so they do not get it
(KAFKA-17492)."""

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Lists the APIs that are served; the registry passes them."""

    def __init__(self) -> None:
        self._keys: list[ApiVersion] = []
        self._keys_without_telemetry: list[ApiVersion] = []
        self._peer_keys: list[ApiVersion] = []

    def advertise(
        self, served: Mapping[int, tuple[int, int]], peer_served: Mapping[int, tuple[int, int]]
    ) -> None:
        """Set the lowest and the highest version of each API, for clients and for brokers."""
        self._keys = _listed(served)
        self._keys_without_telemetry = [
            each for each in self._keys if each.api_key not in TELEMETRY
        ]
        # Brokers push no metrics to each other.
        among_brokers = {**served, **peer_served}
        self._peer_keys = [each for each in _listed(among_brokers) if each.api_key not in TELEMETRY]

    def handle(
        self, node: Node, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        """List the APIs that are served."""
        if context.version >= NAMES_FROM:
            named = (request.client_software_name, request.client_software_version)
            if not all(SOFTWARE_NAME.fullmatch(name) for name in named):
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
            context.software = context.caller.remembered.software = named
        return ApiVersionsResponse(
            api_keys=self._listed_for(node, context),
            supported_features=_supported(context.version),
            finalized_features_epoch=node.quorum.offset,
            finalized_features=_finalized(node.image.feature_level),
        )

    def _listed_for(self, node: Node, context: RequestContext) -> list[ApiVersion]:
        if context.caller.listener.is_peer:
            return self._peer_keys
        return self._keys_without_telemetry if node.client_metrics is None else self._keys

    def unsupported(self, *, peer: bool) -> ApiVersionsResponse:
        """Answer an unknown version: a client with the versions of this API (KIP-511).

        A newer broker receives the list of all APIs, and need not send a second request.
        """
        own = [key for key in self._keys if key.api_key == API_VERSIONS]
        keys = self._peer_keys if peer else own
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)


def _listed(served: Mapping[int, tuple[int, int]]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(served.items())
    ]


def _supported(version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=feature.low, max_version=feature.high)
        for name, feature in features_at(FIRST_LEVEL).items()
        if feature.low > 0 or version >= MINIMUM_ZERO_FROM
    ]


def _finalized(level: int) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(
            name=name, max_version_level=feature.level, min_version_level=feature.level
        )
        for name, feature in features_at(level).items()
        if feature.level > 0
    ]
