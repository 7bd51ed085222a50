"""AlterReplicaLogDirs (key 34), versions 1 and 2: a broker has one log directory.

As in Kafka, a move of a replica to the directory that it is in succeeds. There is no other one.
"""

from barnabas.handlers.authorization import ALTER_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    node: Node, request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Answer for each replica whether it is in the directory asked for."""
    denied = is_denied(node, context, ALTER_CLUSTER)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=number,
                        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                        if denied
                        else _verdict(node, folder.path, topic.name, number),
                    )
                    for number in topic.partitions
                ],
            )
            for folder in request.dirs
            for topic in folder.topics
        ]
    )


def _verdict(node: Node, path: str, topic: str, partition: int) -> ErrorCode:
    if path != node.settings.broker.data_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        node.replica(topic, partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
