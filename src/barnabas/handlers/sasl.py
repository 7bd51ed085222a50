"""SaslHandshake (key 17), versions 0 to 1, and SaslAuthenticate (key 36), versions 0 to 2.

As in Kafka, a listener without authentication answers both with ILLEGAL_SASL_STATE.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle_handshake(
    node: Node, request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    """Refuse: this listener does not authenticate clients."""
    del node, request, context
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def handle_authenticate(
    node: Node, request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    """Refuse: this listener does not authenticate clients."""
    del node, request, context
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="this listener takes no authentication; use security.protocol=PLAINTEXT",
    )
