"""Delegation tokens side by side with Apache Kafka: the same requests, the same error codes.

Kafka's controller learns of a token a while after it answered, so each step waits for what the next
one needs. `docs/security-sasl.md` lists where Barnabas differs.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.model.callers import Principal
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.testing.waiting import eventually
from tests.support.loads.secured_kafka import UserLink, secured_kafka
from tests.support.security.token_talk import TokenTalk
from tests.support.talk.rights import SECURED, caller

pytestmark = pytest.mark.compat

DAY_MS = 86_400_000
LASTING_MS = 60_000
SOON_MS = 500


class Ours:
    """Barnabas, asked in frames."""

    def __init__(self, folder: Path) -> None:
        self._talk = TokenTalk(folder, SECURED)

    def ask(self, user: str, request: Message) -> Any:
        self._talk.caller = caller(Principal("User", user))
        return self._talk.ask(request)

    def wait_until_expired(self, token_id: str) -> None:
        assert token_id
        self._talk.pass_time(SOON_MS)


class Theirs:
    """Apache Kafka."""

    def __init__(self, port: int) -> None:
        self._links = {user: UserLink(port, user) for user in ("admin", "alice", "nobody")}

    def ask(self, user: str, request: Message) -> Any:
        is_last = isinstance(request, CreateDelegationTokenRequest | DescribeDelegationTokenRequest)
        return self._links[user].ask(request, 3 if is_last else 2)

    def wait_until_expired(self, token_id: str) -> None:
        """Wait until the time of a token is over, and Kafka knows that it is so short."""

        def is_over() -> bool:
            found = self.ask("alice", DescribeDelegationTokenRequest(owners=None)).tokens
            by_id = {token.token_id: token for token in found}
            token = by_id.get(token_id)
            if token is None or token.expiry_timestamp >= token.issue_timestamp + LASTING_MS:
                return False
            return time.time() * 1000 > float(token.expiry_timestamp)

        eventually(is_over, 60.0)

    def close(self) -> None:
        for link in self._links.values():
            link.close()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Theirs]:
    with secured_kafka(tmp_path_factory.mktemp("kafka"), jars, has_tokens=True) as port:
        found = Theirs(port)
        yield found
        found.close()


def create(*renewers: tuple[str, str], owner: tuple[str, str] = ("", "")) -> Message:
    named = [CreatableRenewers(principal_type=k, principal_name=n) for k, n in renewers]
    return CreateDelegationTokenRequest(
        owner_principal_type=owner[0],
        owner_principal_name=owner[1],
        renewers=named,
        max_lifetime_ms=-1,
    )


def renew(hmac: bytes, period_ms: int = -1) -> Message:
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


def expire(hmac: bytes, period_ms: int = -1) -> Message:
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def refusals(side: Ours | Theirs) -> list[tuple[Any, ...]]:
    """Return what a side says to requests that create no token."""
    asked = [
        ("alice", create(owner=("User", "bob"))),
        ("alice", create(("Group", "bob"))),
        ("alice", renew(b"none")),
        ("alice", expire(b"none")),
        ("alice", DescribeDelegationTokenRequest(owners=[])),
    ]
    return [said(side.ask(user, request)) for user, request in asked]


def said(answer: Any) -> tuple[Any, ...]:
    """Return all parts of an answer but the texts."""
    return tuple(
        getattr(answer, name) for name in answer.__slots__ if name not in ("throttle_time_ms",)
    )


def life(side: Ours | Theirs) -> list[tuple[str, int, int]]:
    """Create a token, use it in every way, and let it expire; return the codes and lifetimes."""
    made = side.ask("alice", create(("User", "nobody")))
    born_ms = made.issue_timestamp_ms
    found = [("create", made.error_code, made.expiry_timestamp_ms - born_ms)]
    found.append(("end", 0, made.max_timestamp_ms - born_ms))

    def sees(user: str) -> bool:
        seen = side.ask(user, DescribeDelegationTokenRequest(owners=None)).tokens
        return made.token_id in {token.token_id for token in seen}

    assert eventually(lambda: sees("alice") and sees("nobody"), 60.0)

    def note(label: str, user: str, request: Message) -> None:
        code = eventually(lambda: (side.ask(user, request).error_code,), 60.0)
        found.append((label, code[0], 0))

    note("renewed by its owner", "alice", renew(made.hmac))
    note("renewed by a renewer", "nobody", renew(made.hmac, 60_000))
    note("renewed by another", "admin", renew(made.hmac))
    note("expired by another", "admin", expire(made.hmac))
    note("expires soon", "alice", expire(made.hmac, SOON_MS))
    side.wait_until_expired(made.token_id)
    note("renewed too late", "alice", renew(made.hmac))
    note("renewed too late by another", "admin", renew(made.hmac))
    note("expired too late by another", "admin", expire(made.hmac))
    note("expires too late", "alice", expire(made.hmac, SOON_MS))
    note("removed too late", "alice", expire(made.hmac))
    return found


def test_refusals_agree(theirs: Theirs, tmp_path: Path) -> None:
    assert refusals(Ours(tmp_path)) == refusals(theirs)


def test_the_life_of_a_token_agrees(theirs: Theirs, tmp_path: Path) -> None:
    ours = life(Ours(tmp_path))
    assert ours[0] == ("create", 0, DAY_MS)
    assert ours == life(theirs)
