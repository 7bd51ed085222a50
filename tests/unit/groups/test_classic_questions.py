"""Tests requests of clients outside a classic group: commits, subscriptions, descriptions."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.support.talk.classic_talk import ClassicTalk

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID


def subscription(version: int, *topics: str) -> bytes:
    content = ConsumerProtocolSubscription(topics=list(topics))
    return version.to_bytes(2, "big") + encoder(ConsumerProtocolSubscription, version)(content)


def commit(talk: ClassicTalk, member_id: str, epoch: int, *, transactional: bool) -> ErrorCode:
    try:
        talk.group.check_commit(member_id, None, epoch, transactional=transactional)
    except ApiError as error:
        return error.code
    return NONE


def test_members_commit_in_their_generation(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    assert alice.commits() is NONE
    alice.generation = 0
    assert alice.commits() is ErrorCode.ILLEGAL_GENERATION
    alice.generation = -1
    assert alice.commits() is ErrorCode.ILLEGAL_GENERATION
    alice.generation, alice.member_id = 1, "eve"
    assert alice.commits() is UNKNOWN


def test_members_commit_until_other_assignments_are_handed_out(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    bob_joins = bob.join()
    assert alice.commits() is NONE
    alice.take(alice.join())
    assert alice.commits() is NONE
    assert alice.commits(transactional=True) is NONE
    alice.generation -= 1
    assert alice.commits() is NONE
    assert alice.commits(transactional=True) is ErrorCode.ILLEGAL_GENERATION
    alice.generation += 1
    bob.take(bob_joins)
    assert bob.commits() is ErrorCode.REBALANCE_IN_PROGRESS
    alice.sync({})
    alice.generation -= 1
    assert alice.commits() is ErrorCode.ILLEGAL_GENERATION


def test_a_member_without_its_assignment_does_not_commit_between_two_generations(
    talk: ClassicTalk,
) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    bob_joins = bob.join()
    alice.take(alice.join())
    bob.take(bob_joins)
    alice.sync({})
    talk.member("carol").join()
    bob.generation -= 1
    assert bob.commits() is ErrorCode.ILLEGAL_GENERATION


def test_a_restarted_rebalance_leaves_members_their_partitions(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    bob.join()
    alice.take(alice.join())
    talk.member("carol").join()
    for _ in range(2):
        assert alice.commits() is NONE
        alice.generation -= 1
    assert alice.commits() is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("transactional", [False, True])
def test_without_a_generation_only_an_empty_group_takes_commits(
    talk: ClassicTalk, transactional: bool
) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    # Old transactional producers do not send a member id.
    allowed = NONE if transactional else UNKNOWN
    assert commit(talk, "", -1, transactional=transactional) is allowed
    assert commit(talk, "eve", -1, transactional=transactional) is UNKNOWN
    alice.leave()
    assert commit(talk, "", -1, transactional=transactional) is NONE
    assert commit(talk, "eve", -1, transactional=transactional) is NONE
    assert commit(talk, "", 2, transactional=transactional) is UNKNOWN
    talk.group.check_fetch(None, -1)


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_are_read_in_every_version(talk: ClassicTalk, version: int) -> None:
    alice = talk.member("alice", protocols={"range": subscription(version, "orders", "returns")})
    bob = talk.member("bob", protocols={"range": subscription(0, "bills")})
    talk.stable(alice, bob)
    subscribed = [t for t in ("orders", "returns", "bills", "other") if talk.group.subscribes_to(t)]
    assert subscribed == ["orders", "returns", "bills"]
    alice.leave()
    bob.take(bob.join())
    assert not talk.group.subscribes_to("orders")
    assert talk.group.subscribes_to("bills")
    bob.leave()
    assert not talk.group.subscribes_to("bills")


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\1"])
def test_a_subscription_that_cannot_be_read_may_be_to_anything(
    talk: ClassicTalk, metadata: bytes
) -> None:
    talk.stable(talk.member("alice", protocols={"range": metadata}))
    assert talk.group.subscribes_to("anything")


def test_a_stable_group_is_described_in_full(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob", instance_id="b")
    talk.stable(alice, bob)
    told = talk.describe()
    assert (told.error_code, told.group_id, told.group_state) == (0, "group", "Stable")
    assert (told.protocol_type, told.protocol_data) == ("consumer", "range")
    assert [
        (m.member_id, m.group_instance_id, m.client_id, m.client_host) for m in told.members
    ] == [(alice.member_id, None, "alice", "/test"), (bob.member_id, "b", "bob", "/test")]
    assert [(m.member_metadata, m.member_assignment) for m in told.members] == [
        (b"alice", b"alice"),
        (b"bob", b"bob"),
    ]


def test_subscriptions_are_not_returned_during_a_rebalance(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    talk.member("bob").join()
    told = talk.describe()
    assert (told.group_state, told.protocol_type) == ("PreparingRebalance", "consumer")
    assert told.protocol_data == ""
    assert {m.member_metadata for m in told.members} == {b""}
    assert {m.member_assignment for m in told.members} == {b"alice", b""}


def test_an_empty_group_is_described(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    alice.leave()
    told = talk.describe()
    assert (told.group_state, told.protocol_type, told.members) == ("Empty", "consumer", [])


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead(talk: ClassicTalk, version: int) -> None:
    told = talk.describe(version, "nowhere")
    assert (told.group_id, told.group_state) == ("nowhere", "Dead")
    assert told.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert told.error_message == ("Group nowhere not found." if version >= 6 else None)
