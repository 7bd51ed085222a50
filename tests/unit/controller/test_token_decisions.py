"""Decisions on delegation tokens that no dialogue reaches: feature levels, order, bounds."""

from collections.abc import Callable

import pytest

from barnabas.controller import token_decisions
from barnabas.controller.token_decisions import (
    TokenTimes,
    TokenWanted,
    create_token,
    expire_token,
    expired_tokens,
    renew_token,
)
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import FeatureLevelChanged, decode, encode
from barnabas.metadata.security_records import DelegationTokenChanged, DelegationTokenRemoved
from barnabas.model.callers import Principal
from barnabas.model.errors import ApiError, ErrorCode

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TIMES = TokenTimes(max_lifetime_ms=7_000, expiry_ms=1_000)


def image(level: int = 2) -> Image:
    made = Image()
    made.replay(FeatureLevelChanged(level=level))
    return made


def wanted(token_id: str = "t") -> TokenWanted:
    return TokenWanted(token_id, BOB, ALICE, [ALICE, ALICE], -1)


def test_a_record_of_a_new_token() -> None:
    made = create_token(image(), wanted(), TIMES, 100)
    assert made == DelegationTokenChanged(
        token_id="t",
        owner="User:bob",
        requester="User:alice",
        renewers=["User:alice"],
        issued_ms=100,
        expires_ms=1_100,
        ends_ms=7_100,
    )
    assert decode(*encode(made)) == made


def refusal(decide: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        decide()
    return refused.value.code


def test_an_old_cluster_has_no_tokens() -> None:
    """Brokers of release 0.1.0 stop at a record that they do not know."""
    old, too_old = image(level=1), ErrorCode.UNSUPPORTED_VERSION
    assert refusal(lambda: create_token(old, wanted(), TIMES, 0)) == too_old
    assert refusal(lambda: renew_token(old, "t", ALICE, -1, TIMES, 0)) == too_old
    assert refusal(lambda: expire_token(old, "t", ALICE, -1, 0)) == too_old


def test_which_refusal_comes_first() -> None:
    """As in Kafka: who renews learns first that it is too late, who expires that it may not."""
    metadata = image()
    metadata.replay(create_token(metadata, wanted(), TIMES, 0))
    mallory = Principal("User", "mallory")
    expired, mismatch = (
        ErrorCode.DELEGATION_TOKEN_EXPIRED,
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
    )
    assert refusal(lambda: renew_token(metadata, "t", mallory, -1, TIMES, 999)) == mismatch
    assert refusal(lambda: renew_token(metadata, "t", mallory, -1, TIMES, 1_000)) == expired
    assert refusal(lambda: expire_token(metadata, "t", mallory, -1, 1_000)) == mismatch
    assert refusal(lambda: expire_token(metadata, "t", BOB, 5, 1_000)) == expired
    removed = expire_token(metadata, "t", BOB, -1, 1_000)
    assert removed == DelegationTokenRemoved(token_id="t")


def test_expired_tokens_are_removed_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_decisions, "REMOVED_AT_ONCE_MAX", 2)
    metadata = image()
    for number in range(4):
        metadata.replay(create_token(metadata, wanted(f"{number}"), TIMES, number))
    gone = expired_tokens(metadata, 1_002)
    assert gone == [DelegationTokenRemoved(token_id="0"), DelegationTokenRemoved(token_id="1")]
    for record in gone:
        metadata.replay(record)
    assert expired_tokens(metadata, 1_002) == [DelegationTokenRemoved(token_id="2")]


def test_a_fork_does_not_change_the_tokens_of_the_image() -> None:
    metadata = image()
    metadata.replay(create_token(metadata, wanted(), TIMES, 0))
    fork = metadata.fork()
    fork.replay(DelegationTokenRemoved(token_id="t"))
    assert (list(metadata.security.tokens), list(fork.security.tokens)) == (["t"], [])


def test_a_snapshot_has_the_tokens() -> None:
    metadata, loaded = image(), Image()
    metadata.replay(create_token(metadata, wanted(), TIMES, 0))
    for record in metadata.snapshot():
        loaded.replay(record)
    assert loaded.security.tokens == metadata.security.tokens
