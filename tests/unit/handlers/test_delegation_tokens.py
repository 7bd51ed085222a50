"""The APIs of delegation tokens, in a dialogue with a node: Kafka's rules, one by one."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.callers import ANONYMOUS, PEER_LISTENER, Caller, Principal
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import Operation, ResourceType
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from tests.support.security.token_talk import TokenTalk
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.rights import ADMIN, ALICE, SECURED, acl, caller, set_acls

BOB = Principal("User", "bob")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
def talk(tmp_path: Path) -> TokenTalk:
    made = TokenTalk(tmp_path, SECURED)
    made.caller = caller()
    return made


def test_a_token_is_its_creators(talk: TokenTalk) -> None:
    made = talk.create("User:bob")
    now_ms = talk.now_ms
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert made.token_requester_principal_name == "alice"
    times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
    assert times == (now_ms, now_ms + DAY_MS, now_ms + 7 * DAY_MS)
    assert len(made.token_id) == 22
    (shown,) = talk.describe().tokens
    assert (shown.token_id, shown.hmac, shown.principal_name) == (made.token_id, made.hmac, "alice")
    assert [renewer.principal_name for renewer in shown.renewers] == ["bob"]


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "ends_ms"),
    [
        (HOUR_MS, HOUR_MS, HOUR_MS),
        (2 * DAY_MS, DAY_MS, 2 * DAY_MS),
        (30 * DAY_MS, DAY_MS, 7 * DAY_MS),
        (0, DAY_MS, 7 * DAY_MS),
    ],
)
def test_lifetimes(talk: TokenTalk, asked_ms: int, expires_ms: int, ends_ms: int) -> None:
    made = talk.create(lifetime_ms=asked_ms)
    times = made.expiry_timestamp_ms, made.max_timestamp_ms
    assert times == (talk.now_ms + expires_ms, talk.now_ms + ends_ms)


def test_the_settings_are_the_limits(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "security.delegation_token_max_lifetime": "2h",
        "security.delegation_token_expiry_time": "1h",
    }
    talk = TokenTalk(tmp_path, settings)
    talk.caller = caller()
    made = talk.create()
    times = made.expiry_timestamp_ms, made.max_timestamp_ms
    assert times == (talk.now_ms + HOUR_MS, talk.now_ms + 2 * HOUR_MS)
    assert talk.renew(made.hmac, DAY_MS).expiry_timestamp_ms == talk.now_ms + HOUR_MS


def every_answer(talk: TokenTalk, hmac: bytes = b"x") -> list[Any]:
    return [talk.create(), talk.renew(hmac), talk.expire(hmac), talk.describe()]


@pytest.mark.parametrize(
    "who",
    [
        caller(ANONYMOUS),
        caller(Principal("User", "alice", is_by_token=True)),
        Caller(ALICE, PEER_LISTENER, "10.0.0.2"),
    ],
    ids=["anonymous", "by token", "a broker"],
)
def test_who_may_not_manage_tokens_at_all(tmp_path: Path, who: Caller) -> None:
    talk = TokenTalk(tmp_path)
    talk.caller = caller()
    hmac = talk.create().hmac
    talk.caller = who
    codes = {answer.error_code for answer in every_answer(talk, hmac)}
    assert codes == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert len(talk.node.image.security.tokens) == 1


def test_without_a_secret_there_are_no_tokens(tmp_path: Path) -> None:
    talk = TokenTalk(tmp_path)
    talk.stop()
    Dialogue.restart(talk, crash=True)
    talk.caller = caller()
    codes = {answer.error_code for answer in every_answer(talk)}
    assert codes == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}


def test_a_token_for_another_user_needs_a_permission(talk: TokenTalk) -> None:
    refused = talk.create(owner="User:bob")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
    assert (refused.hmac, refused.token_id, refused.max_timestamp_ms) == (b"", "", -1)
    set_acls(talk, [acl((Operation.CREATE_TOKENS, ResourceType.USER), "User:bob")])
    made = talk.create(owner="User:bob")
    assert (made.error_code, made.principal_name) == (0, "bob")
    denied = talk.create(owner="User:carol")
    assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert talk.renew(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize("renewer", ["Group:bob", "Role:admins", ":bob"])
def test_renewers_are_users(talk: TokenTalk, renewer: str) -> None:
    assert talk.create(renewer).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_an_owner_is_a_user(talk: TokenTalk) -> None:
    """A token of a role would have its rights, and no name."""
    talk.caller = caller(ADMIN)
    assert talk.create(owner="Role:admins").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("renewers", [["User:"], ["User:" + "b" * 1025], ["User:b"] * 101])
def test_requests_that_are_too_large(talk: TokenTalk, renewers: list[str]) -> None:
    assert talk.create(*renewers).error_code == ErrorCode.INVALID_REQUEST


def test_a_requester_has_so_many_tokens(talk: TokenTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.controller.token_decisions.TOKENS_OF_REQUESTER_MAX", 2)
    codes = [talk.create().error_code for _ in range(3)]
    assert codes == [0, 0, ErrorCode.POLICY_VIOLATION]
    talk.caller = caller(BOB)
    assert talk.create().error_code == 0


def test_owner_and_renewers_renew(talk: TokenTalk) -> None:
    hmac = talk.create("User:bob").hmac
    for who, code in ((ALICE, 0), (BOB, 0), (ADMIN, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)):
        talk.caller = caller(who)
        assert talk.renew(hmac).error_code == code
    assert talk.renew(hmac).expiry_timestamp_ms == 0


def test_a_token_is_renewed_until_its_end(talk: TokenTalk) -> None:
    made = talk.create()
    for _ in range(7):
        talk.pass_time(DAY_MS - 1)
        expires_ms = talk.renew(made.hmac).expiry_timestamp_ms
        assert expires_ms == min(talk.now_ms + DAY_MS, made.max_timestamp_ms)
    talk.pass_time(DAY_MS)
    late = talk.renew(made.hmac).error_code
    assert late in (ErrorCode.DELEGATION_TOKEN_EXPIRED, ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def test_a_shorter_period(talk: TokenTalk) -> None:
    made = talk.create()
    assert talk.renew(made.hmac, 5).expiry_timestamp_ms == talk.now_ms + 5
    assert talk.renew(made.hmac, HOUR_MS).expiry_timestamp_ms == talk.now_ms + HOUR_MS


def test_an_expired_token_is_of_no_use(talk: TokenTalk) -> None:
    made = talk.create(lifetime_ms=1000)
    talk.pass_time(1000)
    for answer in (talk.renew(made.hmac), talk.expire(made.hmac, 5)):
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    talk.caller = caller(BOB)
    assert talk.renew(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


@pytest.mark.parametrize("change", [b"", b"x", None])
def test_an_hmac_of_no_token(talk: TokenTalk, change: bytes | None) -> None:
    hmac = talk.create().hmac
    other = hmac[:-1] + bytes([hmac[-1] ^ 1]) if change is None else change
    for answer in (talk.renew(other), talk.expire(other)):
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_expires_at_once(talk: TokenTalk) -> None:
    made, kept = talk.create(), talk.create()
    answer = talk.expire(made.hmac)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, talk.now_ms)
    assert talk.ids() == [kept.token_id]
    assert talk.expire(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_expires_later(talk: TokenTalk) -> None:
    made = talk.create()
    assert talk.expire(made.hmac, HOUR_MS).expiry_timestamp_ms == talk.now_ms + HOUR_MS
    assert talk.expire(made.hmac, 30 * DAY_MS).expiry_timestamp_ms == made.max_timestamp_ms


def test_others_do_not_let_a_token_expire(talk: TokenTalk) -> None:
    made = talk.create("User:bob")
    talk.caller = caller(ADMIN)
    assert talk.expire(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    talk.caller = caller(BOB)
    assert talk.expire(made.hmac).error_code == 0


def test_who_sees_which_tokens(talk: TokenTalk) -> None:
    first = talk.create("User:carol").token_id
    talk.caller = caller(BOB)
    second = talk.create().token_id
    assert talk.ids() == [second]
    talk.caller = caller(Principal("User", "carol"))
    assert talk.ids() == [first]
    assert talk.ids("User:bob") == []
    set_acls(
        talk,
        [acl((Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN), second, principal="User:carol")],
    )
    assert talk.ids() == [first, second]
    set_acls(
        talk,
        [acl((Operation.DESCRIBE_TOKENS, ResourceType.USER), "User:bob", principal="User:carol")],
    )
    assert talk.ids() == [first, second]
    assert talk.ids("User:bob") == [second]
    assert talk.ids("User:carol") == [first]
    talk.caller = caller(ADMIN)
    assert talk.ids() == [first, second]


def test_no_owners_are_no_tokens(talk: TokenTalk) -> None:
    talk.create()
    assert talk.ask(DescribeDelegationTokenRequest(owners=[])).tokens == []


def test_many_tokens_are_described_in_steps(talk: TokenTalk) -> None:
    made = [talk.create().token_id for _ in range(120)]
    talk.hold_scans = True
    exchange = talk.send(DescribeDelegationTokenRequest(owners=None), 3)
    assert exchange.waiting
    talk.release_scans()
    assert {token.token_id for token in exchange.answer.tokens} == set(made)


def test_tokens_survive_a_restart(talk: TokenTalk) -> None:
    made = talk.create("User:bob")
    before = list(talk.node.image.security.tokens.values())
    talk.restart()
    assert list(talk.node.image.security.tokens.values()) == before
    assert talk.renew(made.hmac).error_code == 0


def test_the_controller_removes_expired_tokens(talk: TokenTalk) -> None:
    short = talk.create(lifetime_ms=1000).token_id
    long = talk.create().token_id
    assert list(talk.node.image.security.tokens) == [short, long]
    talk.pass_time(HOUR_MS)
    assert list(talk.node.image.security.tokens) == [long]


def test_changes_are_in_the_audit_log_without_the_hmac(tmp_path: Path) -> None:
    settings: dict[str, object] = {**SECURED, "security.audit_file": str(tmp_path / "audit")}
    talk = TokenTalk(tmp_path / "data", settings)
    talk.caller = caller()
    made = talk.create("User:bob")
    talk.renew(made.hmac)
    talk.expire(made.hmac, 5)
    talk.expire(made.hmac)
    talk.create(owner="User:bob")
    said = [(line["api"], line["decision"], line.get("change")) for line in talk.audited]
    assert said == [
        ("CreateDelegationToken", "allowed", "delegation token created"),
        ("RenewDelegationToken", "allowed", "delegation token renewed"),
        ("ExpireDelegationToken", "allowed", "delegation token expires"),
        ("ExpireDelegationToken", "allowed", "delegation token removed"),
        ("CreateDelegationToken", "denied", None),
    ]
    assert {line.get("token_id") for line in talk.audited} == {made.token_id, None}
    assert made.hmac.hex() not in str(talk.audited)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version(talk: TokenTalk, version: int) -> None:
    made = talk.create("User:bob", version=version)
    requester = "alice" if version == 3 else ""
    assert (made.error_code, made.token_requester_principal_name) == (0, requester)
    described = talk.ask(DescribeDelegationTokenRequest(owners=None), version)
    assert [token.token_requester_principal_name for token in described.tokens] == [requester]
