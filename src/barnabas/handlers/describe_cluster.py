"""DescribeCluster (key 60), versions 0 to 2."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.metadata import CLUSTER_OPERATIONS
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """Name the cluster and its brokers."""
    del context
    host, port = node.advertised
    response = DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.image.cluster_id,
        controller_id=node.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.node_id, host=host, port=port, rack=node.settings.broker.rack
            )
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
