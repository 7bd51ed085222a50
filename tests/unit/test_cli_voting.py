"""Tests adding and removing voters by number and data folder, and never the last one."""

from typing import Any, cast

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.voter_changes import add_voter, remove_voter, voter
from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from barnabas.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.wire import cluster_wire as wires
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import RefusedError

OLD, NEW = b"o" * 16, b"n" * 16


class Quorum:
    """Answers as a controller would, and keeps the requests."""

    def __init__(
        self, voters: list[ReplicaState], observers: list[ReplicaState] | None = None
    ) -> None:
        self.codes: list[int] = []
        self.asked: list[Message] = []
        self._partition = DescribeQuorumResponsePartitionData(
            leader_id=1, current_voters=voters, observers=observers or []
        )

    def ask_any(self, request: Message, expected: type[Message]) -> Any:
        self.asked.append(request)
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        if expected is DescribeQuorumResponse:
            topic = DescribeQuorumResponseTopicData(partitions=[self._partition])
            return DescribeQuorumResponse(error_code=code, topics=[topic])
        if expected is DescribeClusterResponse:
            return DescribeClusterResponse(cluster_id="castle")
        assert expected in {AddRaftVoterResponse, RemoveRaftVoterResponse}
        return cast("Any", expected)(error_code=code)


def replica(number: int, directory: bytes = OLD, heard_ms: int = 1) -> ReplicaState:
    return ReplicaState(
        replica_id=number, replica_directory_id=directory, last_fetch_timestamp=heard_ms
    )


def as_wire(quorum: Quorum) -> Wire:
    return cast("Wire", quorum)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "RETRY_PAUSE_S", 0.0)


def test_a_replaced_disk_votes_under_its_new_directory_id() -> None:
    quorum = Quorum([replica(1)], [replica(3, OLD, 5), replica(3, NEW, 9), replica(4, OLD, 99)])
    add_voter(as_wire(quorum), 3, "10.0.0.3:9192")
    request = quorum.asked[-1]
    assert isinstance(request, AddRaftVoterRequest)
    assert (request.cluster_id, request.voter_id) == ("castle", 3)
    assert request.voter_directory_id == NEW
    assert [(each.host, each.port) for each in request.listeners] == [("10.0.0.3", 9192)]


def test_a_node_that_does_not_follow_cannot_vote() -> None:
    with pytest.raises(AdminError, match="Node 3 does not follow the metadata log"):
        add_voter(as_wire(Quorum([replica(1)])), 3, "10.0.0.3:9192")


def test_a_vote_is_taken_from_the_folder_that_has_it() -> None:
    quorum = Quorum([replica(1), replica(2, NEW)])
    found = voter(as_wire(quorum), 2)
    assert found is not None
    remove_voter(as_wire(quorum), found)
    request = quorum.asked[-1]
    assert isinstance(request, RemoveRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == (2, NEW)


def test_the_last_voter_keeps_its_vote() -> None:
    with pytest.raises(AdminError, match="is the only voter"):
        remove_voter(as_wire(Quorum([replica(1)])), replica(1))


def test_an_election_is_waited_for_and_a_refusal_is_not() -> None:
    quorum = Quorum([replica(1), replica(2)])
    quorum.codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER]
    assert voter(as_wire(quorum), 2) is not None
    assert len(quorum.asked) == 3
    quorum.codes = [ErrorCode.INVALID_REQUEST]
    with pytest.raises(RefusedError):
        voter(as_wire(quorum), 2)
    assert len(quorum.asked) == 4
