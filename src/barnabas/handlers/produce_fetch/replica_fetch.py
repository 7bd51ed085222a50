"""Fetch requests of followers: their offsets are their progress, and they read to the log's end.

A follower has everything below its fetch offset. The leader records that before it reads, so that
the response already has the new high watermark. The offset counts only if the two logs agree up to
there: a follower of another leader epoch, or one that diverges, receives an error first.
"""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.fetch import Diverging, FetchPartition, FetchRequest, FetchResult
from barnabas.replication.divergence import misplacement
from barnabas.storage.trust import Allowance


def note_progress(node: Node, request: FetchRequest) -> None:
    """Record a follower's progress in the partitions that it names."""
    for key, partitions in request.topics:
        for wanted in partitions:
            try:
                partition = node.find(key, wanted.partition)
                _check(partition, request.replica_id, wanted)
            except ApiError:
                continue  # the response has the error
            if _diverges(partition, wanted) is None:
                node.replicas.fetched(
                    partition, request.replica_id, request.replica_epoch, wanted.fetch_offset
                )


def read_for_replica(
    partition: Partition,
    replica_id: int,
    wanted: FetchPartition,
    limit_bytes: int,
    allowance: Allowance,
    *,
    at_least_one: bool,
) -> FetchResult:
    """Return the records of a partition for a follower."""
    _check(partition, replica_id, wanted)
    diverging = _diverges(partition, wanted)
    records = None
    if diverging is None:
        records = partition.read_for_follower(
            wanted.fetch_offset, limit_bytes, allowance, at_least_one=at_least_one
        )
    return FetchResult(
        wanted.partition,
        0,
        partition.watermark.high,
        partition.watermark.last_stable,
        partition.log.start_offset,
        records,
        None,
        diverging,
    )


def _diverges(partition: Partition, wanted: FetchPartition) -> Diverging | None:
    """Return where the follower's log diverges from the leader's, if it does."""
    last_epoch, offset = wanted.last_fetched_epoch, wanted.fetch_offset
    found = partition.diverges(last_epoch, offset)
    return found or misplacement(partition.log.epochs, last_epoch, offset)


def _check(partition: Partition, replica_id: int, wanted: FetchPartition) -> None:
    """Refuse a follower of another leader epoch, or a broker that is not a replica."""
    if wanted.leader_epoch != partition.leader_epoch:
        known = wanted.leader_epoch < partition.leader_epoch
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH if known else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if replica_id not in partition.replicas:
        raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE)
