"""The followers' side of Fetch: where they are counts, and they read up to the log's end.

A follower's offset says that it has everything below, so it is taken note of before anything is
read, and what that commits is in the answer already. It counts only where the two logs agree up to
there: one that follows another leader, or diverges, is told so first.
"""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.fetch import Diverging, FetchPartition, FetchRequest, FetchResult
from barnabas.replication.divergence import misplacement
from barnabas.storage.trust import Allowance


def note_progress(node: Node, request: FetchRequest) -> None:
    """Take note of how far a follower is with the partitions that it names."""
    for key, partitions in request.topics:
        for wanted in partitions:
            try:
                partition = node.find(key, wanted.partition)
                _check(partition, request.replica_id, wanted)
            except ApiError:
                continue  # the answer will say so
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
    """Return what a follower gets of a partition that is led here."""
    _check(partition, replica_id, wanted)
    diverging = _diverges(partition, wanted)
    records = None
    if diverging is None:
        records = partition.read_to_copy(
            wanted.fetch_offset, limit_bytes, allowance, at_least_one=at_least_one
        )
    return FetchResult(
        wanted.partition,
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.start_offset,
        records,
        None,
        diverging,
    )


def _diverges(partition: Partition, wanted: FetchPartition) -> Diverging | None:
    """Return where the follower's log leaves that of its leader, if it does."""
    last_epoch, offset = wanted.last_fetched_epoch, wanted.fetch_offset
    found = partition.diverges(last_epoch, offset)
    return found or misplacement(partition.log.epochs, last_epoch, offset)


def _check(partition: Partition, replica_id: int, wanted: FetchPartition) -> None:
    """Refuse whoever follows another leader than this, or is not to have a copy."""
    if wanted.leader_epoch != partition.leader_epoch:
        known = wanted.leader_epoch < partition.leader_epoch
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH if known else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if replica_id not in partition.replicas:
        raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE)
