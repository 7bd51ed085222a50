"""Builds and reads the requests and responses between quorum members, for their one partition.

Nodes always use the highest version of each message, so no field depends on a version. Every
response names the leader and its address, if the sender knows them.
"""

from typing import NamedTuple

from barnabas.effects import Address
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NodeId, TopicId
from barnabas.model.ports import Buffer
from barnabas.protocol.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from barnabas.raft.metadata_log import Divergence
from barnabas.raft.metadata_snapshots import SnapshotId
from barnabas.raft.voters import LISTENER, NO_DIRECTORY, ReplicaKey, Voter

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
FETCH_BYTES = 8 * 1024 * 1024
SNAPSHOT_PIECE_BYTES = 1024 * 1024


class Leadership(NamedTuple):
    """The leader of an epoch and its address, as a response names them."""

    epoch: int
    leader_id: NodeId | None
    address: Address | None = None

    @property
    def wire_id(self) -> int:
        """The leader id on the wire: -1 if there is none."""
        return -1 if self.leader_id is None else self.leader_id


class LogEnd(NamedTuple):
    """How up to date a log is; compares as elections do (Raft 5.4.1)."""

    epoch: int
    offset: int


Endpoints = (
    list[vote.NodeEndpoint]
    | list[begin_quorum_epoch.NodeEndpoint]
    | list[end_quorum_epoch.NodeEndpoint]
    | list[fetch.NodeEndpoint]
    | list[fetch_snapshot.NodeEndpoint]
)


def leadership_from(leader_id: int, epoch: int, endpoints: Endpoints) -> Leadership:
    """Read the leader from the fields of a response."""
    place = next((Address(e.host, e.port) for e in endpoints if e.node_id == leader_id), None)
    return Leadership(epoch, NodeId(leader_id) if leader_id >= 0 else None, place)


class VoteFacts(NamedTuple):
    """What a candidate says about itself in a Vote request."""

    epoch: int
    candidate: ReplicaKey
    log_end: LogEnd
    pre_vote: bool


def vote_request(cluster_id: str | None, voter: Voter, facts: VoteFacts) -> vote.VoteRequest:
    """Ask a voter for its vote."""
    data = vote.VoteRequestPartitionData(
        replica_epoch=facts.epoch,
        replica_id=facts.candidate.id,
        replica_directory_id=facts.candidate.directory,
        voter_directory_id=voter.directory,
        last_offset_epoch=facts.log_end.epoch,
        last_offset=facts.log_end.offset,
        pre_vote=facts.pre_vote,
    )
    topic = vote.VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=[topic])


def vote_facts(data: vote.VoteRequestPartitionData) -> VoteFacts:
    """Read what a candidate says about itself."""
    return VoteFacts(
        data.replica_epoch,
        ReplicaKey(NodeId(data.replica_id), data.replica_directory_id),
        LogEnd(data.last_offset_epoch, data.last_offset),
        data.pre_vote,
    )


def vote_response(
    leader: Leadership, *, granted: bool = False, error: ErrorCode = ErrorCode.NONE
) -> vote.VoteResponse:
    """Answer a candidate."""
    data = vote.VoteResponsePartitionData(
        error_code=error,
        leader_id=leader.wire_id,
        leader_epoch=leader.epoch,
        vote_granted=granted,
    )
    topic = vote.VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    endpoints = [vote.NodeEndpoint(node_id=n, host=h, port=p) for n, h, p in _place(leader)]
    return vote.VoteResponse(topics=[topic], node_endpoints=endpoints)


def begin_request(
    cluster_id: str | None, voter: Voter, leader: Leadership
) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    """Announce the leader to a voter."""
    data = begin_quorum_epoch.BeginQuorumEpochRequestPartitionData(
        voter_directory_id=voter.directory,
        leader_id=leader.wire_id,
        leader_epoch=leader.epoch,
    )
    topic = begin_quorum_epoch.BeginQuorumEpochRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[data]
    )
    listeners = [
        begin_quorum_epoch.LeaderEndpoint(name=LISTENER, host=host, port=port)
        for _, host, port in _place(leader)
    ]
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=cluster_id, voter_id=voter.id, topics=[topic], leader_endpoints=listeners
    )


def begin_response(
    leader: Leadership, error: ErrorCode = ErrorCode.NONE
) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    """Answer a leader that announced itself."""
    data = begin_quorum_epoch.BeginQuorumEpochResponsePartitionData(
        error_code=error, leader_id=leader.wire_id, leader_epoch=leader.epoch
    )
    topic = begin_quorum_epoch.BeginQuorumEpochResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[data]
    )
    endpoints = [
        begin_quorum_epoch.NodeEndpoint(node_id=n, host=h, port=p) for n, h, p in _place(leader)
    ]
    return begin_quorum_epoch.BeginQuorumEpochResponse(topics=[topic], node_endpoints=endpoints)


def end_request(
    cluster_id: str | None, leader: Leadership, successors: list[ReplicaKey]
) -> end_quorum_epoch.EndQuorumEpochRequest:
    """Announce that the leader resigns, with its preferred successors."""
    data = end_quorum_epoch.EndQuorumEpochRequestPartitionData(
        leader_id=leader.wire_id,
        leader_epoch=leader.epoch,
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory)
            for key in successors
        ],
    )
    topic = end_quorum_epoch.EndQuorumEpochRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[data]
    )
    listeners = [
        end_quorum_epoch.LeaderEndpoint(name=LISTENER, host=host, port=port)
        for _, host, port in _place(leader)
    ]
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=cluster_id, topics=[topic], leader_endpoints=listeners
    )


def end_response(
    leader: Leadership, error: ErrorCode = ErrorCode.NONE
) -> end_quorum_epoch.EndQuorumEpochResponse:
    """Answer a leader that resigned."""
    data = end_quorum_epoch.EndQuorumEpochResponsePartitionData(
        error_code=error, leader_id=leader.wire_id, leader_epoch=leader.epoch
    )
    topic = end_quorum_epoch.EndQuorumEpochResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[data]
    )
    endpoints = [
        end_quorum_epoch.NodeEndpoint(node_id=n, host=h, port=p) for n, h, p in _place(leader)
    ]
    return end_quorum_epoch.EndQuorumEpochResponse(topics=[topic], node_endpoints=endpoints)


class FetchFacts(NamedTuple):
    """What a replica says about itself when it fetches."""

    replica: ReplicaKey
    epoch: int
    log_end: LogEnd
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


def fetch_request(cluster_id: str | None, facts: FetchFacts) -> fetch.FetchRequest:
    """Ask for the records after the end of a log."""
    data = fetch.FetchPartition(
        current_leader_epoch=facts.epoch,
        fetch_offset=facts.log_end.offset,
        last_fetched_epoch=facts.log_end.epoch,
        partition_max_bytes=facts.max_bytes,
        replica_directory_id=facts.replica.directory,
        high_watermark=facts.high_watermark,
    )
    topic = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[data])
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=facts.replica.id),
        max_wait_ms=facts.max_wait_ms,
        max_bytes=facts.max_bytes,
        topics=[topic],
    )


def fetch_facts(request: fetch.FetchRequest) -> FetchFacts | None:
    """Read what a replica says about itself; None if it fetches anything but the metadata."""
    asked = [(topic.topic_id, data) for topic in request.topics for data in topic.partitions]
    if len(asked) != 1 or asked[0][0] != METADATA_TOPIC_ID or asked[0][1].partition != 0:
        return None
    data = asked[0][1]
    return FetchFacts(
        ReplicaKey(NodeId(request.replica_state.replica_id), data.replica_directory_id),
        data.current_leader_epoch,
        LogEnd(data.last_fetched_epoch, data.fetch_offset),
        data.high_watermark,
        max(0, request.max_wait_ms),
        max(1, min(FETCH_BYTES, data.partition_max_bytes, request.max_bytes)),
    )


class FetchAnswer(NamedTuple):
    """What a leader answers: records, the point where the logs diverge, or a snapshot id."""

    leader: Leadership
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    log_start_offset: int = -1
    records: Buffer = b""
    divergence: Divergence | None = None
    snapshot: SnapshotId | None = None


def fetch_response(answer: FetchAnswer) -> fetch.FetchResponse:
    """Answer a fetch."""
    data = fetch.PartitionData(
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        current_leader=fetch.LeaderIdAndEpoch(
            leader_id=answer.leader.wire_id, leader_epoch=answer.leader.epoch
        ),
        records=answer.records,
    )
    if answer.divergence is not None:
        data.diverging_epoch = fetch.EpochEndOffset(
            epoch=answer.divergence.epoch, end_offset=answer.divergence.end_offset
        )
    if answer.snapshot is not None:
        data.snapshot_id = fetch.SnapshotId(
            end_offset=answer.snapshot.end_offset, epoch=answer.snapshot.epoch
        )
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[data])
    endpoints = [fetch.NodeEndpoint(node_id=n, host=h, port=p) for n, h, p in _place(answer.leader)]
    return fetch.FetchResponse(responses=[topic], node_endpoints=endpoints)


def fetch_answer(response: fetch.FetchResponse) -> FetchAnswer | None:
    """Read the answer to a fetch; None if it says nothing about the metadata."""
    if response.error_code or not response.responses or not response.responses[0].partitions:
        return None
    data = response.responses[0].partitions[0]
    leader = data.current_leader
    diverging, snapshot = data.diverging_epoch, data.snapshot_id
    return FetchAnswer(
        leadership_from(leader.leader_id, leader.leader_epoch, response.node_endpoints),
        ErrorCode(data.error_code),
        data.high_watermark,
        data.log_start_offset,
        data.records or b"",
        Divergence(diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
        SnapshotId(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
    )


def snapshot_request(
    cluster_id: str | None,
    replica: ReplicaKey,
    epoch: int,
    snapshot: SnapshotId,
    position: int,
) -> fetch_snapshot.FetchSnapshotRequest:
    """Ask for a piece of a snapshot."""
    data = fetch_snapshot.FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.FetchSnapshotRequestSnapshotId(
            end_offset=snapshot.end_offset, epoch=snapshot.epoch
        ),
        position=position,
        replica_directory_id=replica.directory,
    )
    topic = fetch_snapshot.FetchSnapshotRequestTopicSnapshot(name=METADATA_TOPIC, partitions=[data])
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica.id,
        max_bytes=SNAPSHOT_PIECE_BYTES,
        topics=[topic],
    )


class Piece(NamedTuple):
    """A part of a snapshot."""

    snapshot: SnapshotId
    position: int = 0
    size: int = 0
    content: bytes | memoryview = b""


def snapshot_response(
    leader: Leadership, piece: Piece, error: ErrorCode = ErrorCode.NONE
) -> fetch_snapshot.FetchSnapshotResponse:
    """Answer with a piece of a snapshot."""
    data = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        error_code=error,
        snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(
            end_offset=piece.snapshot.end_offset, epoch=piece.snapshot.epoch
        ),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(
            leader_id=leader.wire_id, leader_epoch=leader.epoch
        ),
        size=piece.size,
        position=piece.position,
        unaligned_records=piece.content,
    )
    topic = fetch_snapshot.FetchSnapshotResponseTopicSnapshot(
        name=METADATA_TOPIC, partitions=[data]
    )
    endpoints = [
        fetch_snapshot.NodeEndpoint(node_id=n, host=h, port=p) for n, h, p in _place(leader)
    ]
    return fetch_snapshot.FetchSnapshotResponse(topics=[topic], node_endpoints=endpoints)


def _place(leader: Leadership) -> list[tuple[int, str, int]]:
    if leader.leader_id is None or leader.address is None:
        return []
    return [(leader.leader_id, *leader.address)]


def same_disk(expected: bytes, directory: bytes) -> bool:
    """Whether the directory in a request is this one; zeros stand for any."""
    return expected in (NO_DIRECTORY, directory)
