"""Tests message classes: what their declared fields become."""

import copy
import pickle

import pytest

from barnabas.protocol.messages.fetch import EpochEndOffset, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def test_fields_become_slots_in_wire_order() -> None:
    assert JoinGroupRequestProtocol.__slots__ == ("name", "metadata")
    assert JoinGroupRequestProtocol.FIELDS == {"name": "string 0+", "metadata": "bytes 0+"}
    assert not hasattr(JoinGroupRequestProtocol(), "__dict__")


def test_every_field_has_the_default_of_the_protocol() -> None:
    request = JoinGroupRequest()
    assert request.group_id == ""
    assert request.rebalance_timeout_ms == -1
    assert request.group_instance_id is None
    assert request.protocols == []
    assert PartitionData().diverging_epoch == EpochEndOffset(epoch=-1, end_offset=-1)


def test_lists_and_structs_are_not_shared() -> None:
    first, second = FetchResponse(), FetchResponse()
    assert first.responses is not second.responses
    assert PartitionData().current_leader is not PartitionData().current_leader


def test_a_given_value_is_kept_as_it_is() -> None:
    protocols = [JoinGroupRequestProtocol(name="range")]
    assert JoinGroupRequest(protocols=protocols).protocols is protocols


@pytest.mark.parametrize("_again", range(2))  # the first call compiles the constructor
def test_a_constructor_refuses_what_is_not_a_field(_again: int) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
        HeartbeatRequest(group="g")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        HeartbeatRequest("g")  # type: ignore[call-arg]


def test_messages_are_equal_by_content() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3)
    assert copy.copy(request) == request
    assert pickle.loads(pickle.dumps(request)) == request
    assert request != HeartbeatRequest(group_id="g")
    assert "group_id='g', generation_id=3" in repr(request)
