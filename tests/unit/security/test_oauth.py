"""OAUTHBEARER: tokens that are accepted, and every kind that is not."""

import base64
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from barnabas.model.steps import finish
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Reply
from barnabas.security.oauth import INVALID_TOKEN, OauthExchange
from barnabas.security.oauth_keys import TOKEN_BYTES_MAX, TokenKeys, TokenRules, read_keys
from tests.support.security.tokens import AUDIENCE, ISSUER, Issuer

NOW_S = 1_700_000_000
RULES = TokenRules(issuer=ISSUER, audience=AUDIENCE, principal_claim="sub", skew_ms=30_000)


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


class Server:
    """The server's end, with the issuer's keys."""

    def __init__(self, issuer: Issuer, rules: TokenRules = RULES) -> None:
        self.keys = TokenKeys()
        self.keys.set(read_keys(issuer.published()))
        self.rules = rules
        self.now_ms = 0
        self.exchange = self.begin()

    def begin(self) -> OauthExchange:
        return OauthExchange(self.keys, self.rules, lambda: (self.now_ms, NOW_S * 1000))

    def reply(self, message: bytes) -> Reply:
        return finish(self.exchange.reply(message))

    def take(self, token: str, *, prefix: bytes = b"n,,") -> Reply:
        return self.reply(prefix + b"\x01auth=Bearer " + token.encode() + b"\x01\x01")


def is_invalid(server: Server, token: str) -> bool:
    """Tell whether a token gets the error document, and the client's next message fails."""
    reply = server.take(token)
    if reply.proven is not None:
        return False
    assert reply.token == INVALID_TOKEN
    with pytest.raises(AuthenticationFailedError):
        server.reply(b"\x01")
    return True


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_a_token_that_the_issuer_signed(issuer: Issuer, kind: str) -> None:
    token = issuer.token("alice", key=getattr(issuer, kind), now_s=NOW_S)
    reply = Server(issuer).take(token)
    assert reply.proven is not None
    assert (reply.token, str(reply.proven.principal)) == (b"", "User:alice")
    assert reply.proven.lifetime_ms == 3_600_000 + 30_000


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW_S - 29},
        {"nbf": NOW_S + 29},
        {"iat": NOW_S + 29},
        {"iat": None},
        {"aud": ["other", AUDIENCE]},
        {"exp": NOW_S + 0.5},
    ],
    ids=str,
)
def test_claims_that_are_accepted(issuer: Issuer, claims: dict[str, Any]) -> None:
    reply = Server(issuer).take(issuer.token(now_s=NOW_S, **claims))
    assert reply.proven is not None
    assert reply.proven.lifetime_ms is not None
    assert reply.proven.lifetime_ms > 0


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"exp": NOW_S - 30},
        {"exp": str(NOW_S + 60)},
        {"exp": True},
        {"exp": -1},
        {"exp": 1e300},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"nbf": NOW_S + 31},
        {"nbf": "now"},
        {"iat": NOW_S + 31},
        {"iss": None},
        {"iss": "https://issuer.test/other"},
        {"iss": [ISSUER]},
        {"aud": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": {AUDIENCE: 1}},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["alice"]},
    ],
    ids=str,
)
def test_claims_that_are_refused(issuer: Issuer, claims: dict[str, Any]) -> None:
    assert is_invalid(Server(issuer), issuer.token(now_s=NOW_S, **claims))


def test_another_claim_names_the_principal(issuer: Issuer) -> None:
    rules = TokenRules(issuer=None, audience=None, principal_claim="client", skew_ms=0)
    token = issuer.token(now_s=NOW_S, client="spark", iss=None, aud=None)
    reply = Server(issuer, rules).take(token)
    assert reply.proven is not None
    assert str(reply.proven.principal) == "User:spark"


def as_text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def unsigned(issuer: Issuer, algorithm: str) -> str:
    """Return a valid token with its signature cut off, and another algorithm in its header."""
    _, claims, _ = issuer.token(now_s=NOW_S).split(".")
    head = json.dumps({"alg": algorithm, "kid": "rsa"}).encode()
    return f"{base64.urlsafe_b64encode(head).decode().rstrip('=')}.{claims}."


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "HS256", "RS256", ""])
def test_without_a_signature(issuer: Issuer, algorithm: str) -> None:
    assert is_invalid(Server(issuer), unsigned(issuer, algorithm))
    assert is_invalid(Server(issuer), unsigned(issuer, algorithm) + "AAAA")


def test_a_public_key_is_no_shared_secret(issuer: Issuer) -> None:
    claims = issuer.token(now_s=NOW_S).split(".")[1]
    head = as_text(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())
    signed = f"{head}.{claims}"
    signature = hmac.digest(issuer.rsa.as_pem(private=False), signed.encode(), "sha256")
    assert is_invalid(Server(issuer), f"{signed}.{as_text(signature)}")


def test_a_key_set_with_a_shared_secret_does_not_help(issuer: Issuer) -> None:
    server = Server(issuer)
    listed = json.loads(issuer.published(issuer.rsa))
    listed["keys"].append(issuer.shared.as_dict(private=True))
    server.keys.set(read_keys(json.dumps(listed)))
    assert is_invalid(server, issuer.token(now_s=NOW_S, key=issuer.shared))


@pytest.mark.parametrize(
    "header",
    [
        {"kid": None},
        {"kid": "unknown"},
        {"kid": 7},
        {"kid": "ec"},
        {"kid": "../../etc/passwd"},
    ],
    ids=str,
)
def test_headers_that_are_refused(issuer: Issuer, header: dict[str, Any]) -> None:
    good = issuer.token(now_s=NOW_S).split(".")
    made = {"alg": "RS256", "kid": "rsa", **header}
    made = {name: value for name, value in made.items() if value is not None}
    good[0] = base64.urlsafe_b64encode(json.dumps(made).encode()).decode().rstrip("=")
    assert is_invalid(Server(issuer), ".".join(good))


def signed_by_hand(issuer: Issuer, **header: Any) -> str:
    """Return a token with any header, and a signature that holds."""
    head = as_text(json.dumps({"alg": "RS256", "kid": "rsa", **header}).encode())
    signed = f"{head}.{issuer.token(now_s=NOW_S).split('.')[1]}"
    key = issuer.rsa.private_key
    assert key is not None
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{as_text(signature)}"


@pytest.mark.parametrize(
    "extra", [{"crit": ["exp"]}, {"b64": True}, {"crit": ["b64"], "b64": True}]
)
def test_extensions_are_refused(issuer: Issuer, extra: dict[str, Any]) -> None:
    assert Server(issuer).take(signed_by_hand(issuer)).proven is not None
    assert is_invalid(Server(issuer), signed_by_hand(issuer, **extra))


def test_a_second_token_does_not_help(issuer: Issuer) -> None:
    server = Server(issuer)
    assert server.take(Issuer().token(now_s=NOW_S)).token == INVALID_TOKEN
    with pytest.raises(AuthenticationFailedError):
        server.take(issuer.token(now_s=NOW_S))


def test_a_place_for_keys_in_the_token_is_ignored(issuer: Issuer) -> None:
    stranger = Issuer()
    token = stranger.token(
        now_s=NOW_S, header={"jku": "https://stranger.test/keys", "jwk": stranger.rsa.as_dict()}
    )
    assert is_invalid(Server(issuer), token)


def test_another_issuer_with_the_same_key_id(issuer: Issuer) -> None:
    assert is_invalid(Server(issuer), Issuer().token(now_s=NOW_S))


def test_a_changed_claim(issuer: Issuer) -> None:
    head, _, signature = issuer.token("alice", now_s=NOW_S).split(".")
    _, claims, _ = issuer.token("admin", now_s=NOW_S).split(".")
    assert is_invalid(Server(issuer), f"{head}.{claims}.{signature}")


@pytest.mark.parametrize("token", ["abc", "a.b", "a.b.c", "a.b.c.d.e", "....", "e30.e30.e30"])
def test_what_is_no_token(issuer: Issuer, token: str) -> None:
    assert is_invalid(Server(issuer), token)


def test_a_token_that_is_too_long(issuer: Issuer) -> None:
    token = issuer.token(now_s=NOW_S, pad="x" * TOKEN_BYTES_MAX)
    assert is_invalid(Server(issuer), token)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,auth=Bearer abc\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer a\xff\x01\x01",
    ],
)
def test_messages_that_are_refused_at_once(issuer: Issuer, message: bytes) -> None:
    with pytest.raises(AuthenticationFailedError):
        Server(issuer).reply(message)


def test_the_authorization_id_is_the_principal_or_nothing(issuer: Issuer) -> None:
    token = issuer.token("alice", now_s=NOW_S)
    assert Server(issuer).take(token, prefix=b"n,a=alice,").proven is not None
    with pytest.raises(AuthenticationFailedError):
        Server(issuer).take(token, prefix=b"n,a=admin,")


def test_an_unknown_key_is_wished_for_once_in_ten_seconds(issuer: Issuer) -> None:
    server = Server(issuer)
    wishes: list[int] = []
    server.keys.on_wish = lambda: wishes.append(server.now_ms)
    token = Issuer().token(now_s=NOW_S, header={"kid": "next"})
    for server.now_ms in (0, 5_000, 9_999, 10_000, 10_001, 25_000):
        server.exchange = server.begin()
        assert is_invalid(server, token)
    assert wishes == [0, 10_000, 25_000]


def test_no_token_is_accepted_without_keys(issuer: Issuer) -> None:
    server = Server(issuer)
    server.keys.set({})
    assert is_invalid(server, issuer.token(now_s=NOW_S))


def test_the_issuer_changes_its_keys(issuer: Issuer) -> None:
    server, other = Server(issuer), Issuer()
    server.keys.set(read_keys(other.published()))
    assert is_invalid(server, issuer.token(now_s=NOW_S))
    server.exchange = server.begin()
    assert server.take(other.token(now_s=NOW_S)).proven is not None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"keys": 7}', '{"keys": []}', '{"keys": [{"kty": "oct", "k": "YQ"}]}', "x"],
)
def test_documents_without_keys(text: str) -> None:
    with pytest.raises(ValueError, match="it "):
        read_keys(text)


def test_keys_that_are_left_out(issuer: Issuer) -> None:
    listed = json.loads(issuer.published())["keys"]
    strange = [
        {"kty": "RSA", "kid": "short", "n": as_text(b"\xff" * 128), "e": "AQAB"},
        {**listed[0], "kid": "enc", "use": "enc"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": "new", "kid": "new"},
        "no key",
    ]
    assert set(read_keys(json.dumps({"keys": [*strange, *listed]}))) == {"rsa", "ec"}
