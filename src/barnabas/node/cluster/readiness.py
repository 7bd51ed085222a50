"""Whether this broker serves clients: a question about itself, which needs no other broker."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.model.phrases import format_duration
from barnabas.node.node import Node

READY, STARTING, FENCED, STOPPING = "ready", "starting", "fenced", "stopping"
IN_QUORUM = ("leader", "follower")
"""The roles of a voter that takes part in the quorum."""


class Readiness(NamedTuple):
    """A word, and why it is not "ready"."""

    verdict: str
    reasons: list[str]


def readiness(node: Node, *, serves_clients: bool) -> Readiness:
    """Judge whether clients should be sent to this broker."""
    if node.membership.is_leaving:
        return Readiness(STOPPING, ["the broker is stopping"])
    reasons = list(_of_quorum(node))
    if not node.is_broker:
        return Readiness(STARTING if reasons else READY, reasons)
    if not serves_clients:
        return Readiness(STARTING, ["the broker does not accept clients yet", *reasons])
    fenced = list(_of_membership(node))
    return Readiness(FENCED if fenced or reasons else READY, [*fenced, *reasons])


def _of_quorum(node: Node) -> Iterator[str]:
    raft = node.quorum.raft
    role = raft.elections.role.name
    if not raft.voters.includes(raft.identity.key):
        return
    if role not in IN_QUORUM or raft.leader_id is None:
        yield f"this voter is not in contact with the metadata quorum; its role is {role}"


def _of_membership(node: Node) -> Iterator[str]:
    membership, known = node.membership, node.image.brokers.get(node.node_id)
    if not membership.is_active or known is None or known.fenced:
        yield "the controller has fenced this broker"
    elif not node.is_alone:
        silent_ms = node.timers.now_ms - membership.answered_ms
        if silent_ms > node.settings.cluster.broker_session_timeout_ms:
            yield f"the controller has answered no heartbeat for {format_duration(silent_ms)}"
