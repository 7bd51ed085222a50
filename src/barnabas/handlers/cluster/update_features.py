"""UpdateFeatures (key 57), versions 0 to 2: the operator raises the cluster's feature level.

Either all updates of a request are made or none, in every version, as in Kafka since 4.0. The
response has one error for all. Versions 0 and 1 also list the features.

Deviations: a level is never lowered, neither safely nor unsafely
(`controller/feature_decisions.py`).
`transaction.version` is fixed: the level it has is accepted, others are refused.
"""

from barnabas.controller.feature_decisions import UNSAFE_DOWNGRADE, UPGRADE
from barnabas.handlers.authorization import ALTER_CLUSTER, require
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES_FROM = 1
NO_RESULTS_FROM = 2


def handle(
    node: Node, request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse | Pending[UpdateFeaturesResponse]:
    """Raise the level, or refuse to."""
    if context.version < UPGRADE_TYPES_FROM:
        for update in request.feature_updates:
            update.upgrade_type = UNSAFE_DOWNGRADE if update.allow_downgrade else UPGRADE

    def done(_: None) -> UpdateFeaturesResponse:
        results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
            if context.version < NO_RESULTS_FROM
        ]
        return UpdateFeaturesResponse(error_message=None, results=results)

    def refuse(error: ApiError) -> UpdateFeaturesResponse:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)

    answer: Pending[UpdateFeaturesResponse] = Pending()

    def failed(error: Exception) -> None:
        if isinstance(error, ApiError):
            answer.complete(refuse(error))
        else:
            answer.fail(error)

    def decide() -> Pending[UpdateFeaturesResponse]:
        require(node, context, ALTER_CLUSTER)
        updated = node.controlling.upgrading.update(request)
        updated.when_done(lambda result: answer.complete(done(result)), failed)
        return answer

    return decided(decide, refuse)
