"""ApiVersions (key 18), versions 0 to 4.

An unsupported version is answered in version 0 with error 35 and the real range (KIP-511). From
version 3 on the client names its software; names that are not names are refused as in Kafka.
"""

import re
from collections.abc import Mapping

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


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
        if context.version >= 3:
            named = (request.client_software_name, request.client_software_version)
            if not all(SOFTWARE_NAME.fullmatch(name) for name in named):
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(api_keys=self._keys)

    def unsupported(self) -> ApiVersionsResponse:
        """Answer a version from the future."""
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=self._keys)
