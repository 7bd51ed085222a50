"""DescribeLogDirs (key 35), versions 1 to 5."""

from collections import defaultdict

from barnabas.handlers.answers import in_steps
from barnabas.handlers.authorization import DESCRIBE_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps, Work
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNITS = 6
"""The cost of describing a partition or a topic."""


def handle(
    node: Node, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse | Pending[DescribeLogDirsResponse]:
    """Return the sizes of logs; of all topics if the request names none."""
    if is_denied(node, context, DESCRIBE_CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(t.topic, index) for t in request.topics for index in t.partitions}
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for name, partition in node.partitions.items():
        if wanted is None or name in wanted:
            by_topic[name.topic].append(partition)
    return in_steps(node, _described(node, by_topic, context.version), context)


def _described(
    node: Node, by_topic: dict[str, list[Partition]], version: int
) -> Steps[DescribeLogDirsResponse]:
    encode_topic = encoder(DescribeLogDirsTopic, version)
    encode_partition = encoder(DescribeLogDirsPartition, version)
    work, topics = Work(), Encoded()
    for name, found in by_topic.items():
        partitions = Encoded()
        for partition in found:
            described = DescribeLogDirsPartition(
                partition_index=partition.name.partition, partition_size=partition.log.size
            )
            partitions.append(encode_partition(described))
            if work.spend(UNITS):
                yield None
        topics.append(encode_topic(DescribeLogDirsTopic(name=name, partitions=partitions)))
        if work.spend(UNITS):
            yield None
    folder = node.settings.broker.data_dir
    total, usable = node.disk.space(folder)
    result = DescribeLogDirsResult(
        log_dir=folder, topics=topics, total_bytes=total, usable_bytes=usable
    )
    encoded = encoder(DescribeLogDirsResult, version)(result)
    return DescribeLogDirsResponse(results=Encoded([encoded]))
