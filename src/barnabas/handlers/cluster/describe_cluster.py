"""DescribeCluster (key 60), versions 0 to 2."""

from barnabas.handlers.client_endpoints import endpoint_on
from barnabas.handlers.cluster.metadata import cluster_operations, controller_of
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
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="brokers (1) are to be asked for here",
        )
    brokers = node.image.brokers.values() if request.include_fenced_brokers else node.brokers
    listener = context.caller.listener
    response = DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.image.cluster_id,
        controller_id=controller_of(node, listener),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id,
                host=endpoint[0],
                port=endpoint[1],
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker in brokers
            if (endpoint := endpoint_on(node, broker, listener)) is not None
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(node, context)
    return response
