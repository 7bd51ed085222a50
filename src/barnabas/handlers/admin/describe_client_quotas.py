"""DescribeClientQuotas (key 48), versions 0 to 1. Each broker answers from the committed metadata.

The quotas of the broker's own settings are not among them.
"""

from barnabas.controller.client_quota_decisions import matching
from barnabas.handlers.authorization import DESCRIBE_CONFIGS_CLUSTER, require
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


def handle(
    node: Node, request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """Return the quotas that match a filter."""
    quotas = node.image.security.quotas
    try:
        require(node, context, DESCRIBE_CONFIGS_CLUSTER)
        found = matching(quotas, request.components, strict=request.strict)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found
        ],
    )
