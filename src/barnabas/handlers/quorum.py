"""The metadata quorum's own requests: Vote (key 52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), UpdateRaftVoter (82) between nodes; DescribeQuorum (55), AddRaftVoter (80) and
RemoveRaftVoter (81) for clients, too. Raft answers all of them; here they only pass through.
"""

from typing import Any

from barnabas.handlers.context import RequestContext
from barnabas.node.node import Node
from barnabas.protocol.message import Message


def handle_vote(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401 - a row
    """Give a vote, or not."""
    return node.quorum.raft.handle_vote(request)


def handle_begin_quorum_epoch(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Hear who leads."""
    return node.quorum.raft.handle_begin_quorum_epoch(request)


def handle_end_quorum_epoch(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Hear that a leader steps down."""
    return node.quorum.raft.handle_end_quorum_epoch(request)


def handle_fetch_snapshot(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Hand out a piece of a snapshot."""
    return node.quorum.raft.handle_fetch_snapshot(request)


def handle_describe_quorum(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Tell who votes and how far each is."""
    return node.quorum.raft.handle_describe_quorum(request)


def handle_add_voter(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Take in a voter."""
    return node.quorum.raft.handle_add_voter(request)


def handle_remove_voter(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Let a voter go."""
    return node.quorum.raft.handle_remove_voter(request)


def handle_update_voter(node: Node, request: Message, _: RequestContext) -> Any:  # noqa: ANN401
    """Learn where a voter is now."""
    return node.quorum.raft.handle_update_voter(request)
