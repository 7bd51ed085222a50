"""DescribeCluster (key 60), versions 0 to 2."""

from barnabas.handlers.cluster.metadata import CLUSTER_OPERATIONS, controller_of
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """Name the cluster and its brokers."""
    del context
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="brokers (1) are to be asked for here",
        )
    brokers = node.image.brokers.values() if request.include_fenced_brokers else node.brokers
    response = DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.image.cluster_id,
        controller_id=controller_of(node),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker in brokers
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
