"""Add and remove voters of the metadata quorum, one at a time.

A voter is identified by its node id and the id of its data directory, so that a replaced disk does
not count as the old voter (KAFKA-17608). DescribeQuorum returns both.
"""

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.inspection import describe_cluster, describe_quorum
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from barnabas.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.wire.addresses import split_address
from barnabas.wire.cluster_wire import Wire, settled
from barnabas.wire.wire_failures import RefusedError

LISTENER = "CONTROLLER"
REQUEST_TIMEOUT_MS = 30_000


def quorum(wire: Wire) -> DescribeQuorumResponsePartitionData:
    """Return voters and observers; wait while a controller is being elected."""

    def ask() -> tuple[int, DescribeQuorumResponsePartitionData | None]:
        try:
            return ErrorCode.NONE, describe_quorum(wire)
        except RefusedError as error:
            return error.code, None

    found = settled(ask, "The quorum cannot be described")
    assert found is not None
    return found


def voter(wire: Wire, node_id: int) -> ReplicaState | None:
    """Return a voter by its node id."""
    found = quorum(wire).current_voters
    return next((each for each in found if each.replica_id == node_id), None)


def observer(wire: Wire, node_id: int) -> ReplicaState | None:
    """Return an observer of the metadata log, with its current data directory."""
    found = [each for each in quorum(wire).observers if each.replica_id == node_id]
    # The quorum still lists the directory of a lost disk for a while.
    return max(found, key=lambda each: each.last_fetch_timestamp, default=None)


def add_voter(wire: Wire, node_id: int, peer_listen: str) -> None:
    """Make a broker that follows the metadata log a voter."""
    found = observer(wire, node_id)
    if found is None:
        raise AdminError(
            f"Node {node_id} does not follow the metadata log, so it cannot become a voter; "
            "start it with the voters of this cluster"
        )
    host, port = split_address(peer_listen)
    request = AddRaftVoterRequest(
        cluster_id=describe_cluster(wire).cluster_id,
        timeout_ms=REQUEST_TIMEOUT_MS,
        voter_id=node_id,
        voter_directory_id=found.replica_directory_id,
        listeners=[Listener(name=LISTENER, host=host, port=port)],
    )

    def ask() -> tuple[int, str]:
        answer = wire.ask_any(request, AddRaftVoterResponse)
        return answer.error_code, answer.error_message or ""

    settled(ask, f"Node {node_id} was not made a voter")


def remove_voter(wire: Wire, found: ReplicaState) -> None:
    """Remove a voter from the quorum."""
    voters = quorum(wire).current_voters
    if len(voters) == 1:
        raise AdminError(
            f"Node {found.replica_id} is the only voter; add another one with "
            "`barnabas cluster add --voter` first"
        )
    request = RemoveRaftVoterRequest(
        cluster_id=describe_cluster(wire).cluster_id,
        voter_id=found.replica_id,
        voter_directory_id=found.replica_directory_id,
    )

    def ask() -> tuple[int, str]:
        answer = wire.ask_any(request, RemoveRaftVoterResponse)
        return answer.error_code, answer.error_message or ""

    settled(ask, f"Node {found.replica_id} remains a voter")
