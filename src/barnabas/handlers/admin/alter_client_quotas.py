"""AlterClientQuotas (key 49), versions 0 to 1. The controller decides (KIP-546).

The quotas are in force on each broker as soon as it has the committed metadata. Connections that
are paused at that moment stay paused for the time in the response that they got.
"""

from barnabas.controller import client_quota_decisions
from barnabas.handlers.authorization import ALTER_CONFIGS_CLUSTER, is_denied, note_change
from barnabas.handlers.context import RequestContext
from barnabas.metadata.security_records import ClientQuotaChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


def handle(
    node: Node, request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse | Pending[AlterClientQuotasResponse]:
    """Set and remove quotas."""
    if is_denied(node, context, ALTER_CONFIGS_CLUSTER):
        denied = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return AlterClientQuotasResponse(
            entries=[answer_of(entry, denied) for entry in request.entries]
        )
    decided = client_quota_decisions.alter(node.draft, request.entries)
    response = AlterClientQuotasResponse(
        entries=[
            answer_of(entry, found.error)
            for entry, found in zip(request.entries, decided, strict=True)
        ]
    )
    records: list[ClientQuotaChanged] = [each for found in decided for each in found.records]
    if request.validate_only or not records:
        return response
    try:
        committed = node.commit(records, context.now_ms)
    except ApiError as error:
        return AlterClientQuotasResponse(
            entries=[answer_of(entry, error) for entry in request.entries]
        )
    for record in records:
        facts = {"entity": record.entity, "quota": record.key, "value": record.value}
        note_change(node, context, "client quota altered", facts)
    return committed.map(lambda _: response)


def answer_of(
    entry: AlterClientQuotasRequestEntryData, error: ApiError | None
) -> AlterClientQuotasResponseEntryData:
    """Return the result of an entry."""
    return AlterClientQuotasResponseEntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=[
            AlterClientQuotasResponseEntityData(
                entity_type=part.entity_type, entity_name=part.entity_name
            )
            for part in entry.entity
        ],
    )
