"""DescribeLogDirs (key 35), versions 1 to 5."""

from collections import defaultdict

from barnabas.handlers.context import RequestContext
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(
    node: Node, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    """Say how large the logs are; no topics asked for is all of them."""
    del context
    wanted = None
    if request.topics is not None:
        wanted = {(t.topic, index) for t in request.topics for index in t.partitions}
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for name, partition in node.partitions.items():
        if wanted is None or name in wanted:
            by_topic[name.topic].append(partition)
    folder = node.settings.broker.data_dir
    total, usable = node.disk.space(folder)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=folder,
                topics=[_describe(name, partitions) for name, partitions in by_topic.items()],
                total_bytes=total,
                usable_bytes=usable,
            )
        ]
    )


def _describe(name: str, partitions: list[Partition]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=partition.name.partition, partition_size=partition.log.size
            )
            for partition in partitions
        ],
    )
