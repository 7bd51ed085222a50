"""The metrics of the controller and of the metadata quorum."""

from barnabas.metadata.image import NO_LEADER
from barnabas.node.node import Node
from barnabas.server.metrics import metric_families as metrics
from barnabas.server.metrics.exposition_text import Texts, Writer
from barnabas.server.metrics.metered_server import MeteredServer
from barnabas.server.metrics.partition_metrics import TEXTS_BETWEEN

NONE = -1


def controller_texts(writer: Writer, node: Node) -> Texts:
    """Write what the active controller knows; all numbers are 0 on other brokers."""
    is_controller = node.is_controller
    image = node.image
    topics = list(image.topics.values()) if is_controller else []
    partitions = offline = unpreferred = 0
    for topic in topics:
        for placed in topic.partitions:
            partitions += 1
            offline += placed.leader == NO_LEADER
            unpreferred += placed.leader not in (NO_LEADER, placed.replicas[0])
            if partitions % TEXTS_BETWEEN == 0:
                yield ""
    brokers = list(image.brokers.values()) if is_controller else []
    fenced = sum(broker.fenced for broker in brokers)
    for family, value in (
        (metrics.ACTIVE_CONTROLLER, is_controller),
        (metrics.OFFLINE_PARTITIONS, offline),
        (metrics.GLOBAL_TOPICS, len(topics)),
        (metrics.GLOBAL_PARTITIONS, partitions),
        (metrics.ACTIVE_BROKERS, len(brokers) - fenced),
        (metrics.FENCED_BROKERS, fenced),
        (metrics.IMBALANCE, unpreferred),
        (metrics.APPLIED_LAG, _applied_lag_ms(node)),
        (metrics.UNCLEAN_ELECTIONS, node.controlling.unclean_elections),
    ):
        yield from writer.one(family, value)


def _applied_lag_ms(node: Node) -> int:
    """Return how old what this broker has applied is, where it knows that there is more."""
    raft = node.quorum.raft
    if node.is_controller or node.quorum.offset >= raft.end_offset:
        return 0
    return max(0, node.timers.wall_ms - raft.committed.applied_ms)


def quorum_texts(writer: Writer, server: MeteredServer) -> Texts:
    """Write what this node knows of the metadata quorum."""
    raft, peers, rates = server.node.quorum.raft, server.peers, server.rates
    elections = raft.elections
    state = elections.state.current
    leader, vote = elections.leader_id, state.voted
    for family, value in (
        (metrics.RAFT_LEADER, NONE if leader is None else leader),
        (metrics.RAFT_VOTE, NONE if vote is None else vote.id),
        (metrics.RAFT_EPOCH, elections.epoch),
        (metrics.RAFT_HIGH_WATERMARK, raft.high_watermark),
        (metrics.RAFT_END, raft.end_offset),
        (metrics.RAFT_APPENDS, rates.appended),
        (metrics.RAFT_FETCHES, rates.fetched),
        (metrics.RAFT_LATENCY, rates.commit_ms),
        (metrics.CHANNEL_IN, peers.quorum_bytes_in),
        (metrics.CHANNEL_OUT, peers.quorum_bytes_out),
        (metrics.CHANNEL_REQUESTS, peers.quorum_asked),
        (metrics.CHANNEL_RESPONSES, peers.quorum_answered),
    ):
        yield from writer.one(family, value)
    yield from writer.labelled(metrics.RAFT_STATE, [([elections.role.name], 1)])
