"""PLAIN: passwords against SCRAM credentials, and what is remembered of them."""

import pytest

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import ScramCredentialRemoved
from barnabas.model.steps import Rest, begin, finish, resume
from barnabas.security import plain
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Reply
from barnabas.security.plain import PlainExchange, Remembered
from barnabas.security.scram import Credentials
from barnabas.security.scram_formulas import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramMechanism,
    credential,
)

SALT = b"salt" * 8


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


class Server:
    """The server's end, with some users; it knows what was derived on a thread."""

    def __init__(self) -> None:
        self.image = SecurityImage(secret="5e" * 32)
        self.remembered = Remembered(random_bytes)
        self.credentials = Credentials(lambda: self.image, random_bytes)
        self.set("alice", "secret")

    def set(self, user: str, password: str, mechanism: ScramMechanism = SCRAM_SHA_256) -> None:
        self.image.replay(credential(mechanism, user, password, SALT, 4096))

    def begin(self, user: str, password: str) -> Reply | Rest[Reply]:
        exchange = PlainExchange(self.credentials, self.remembered)
        return begin(exchange.reply(b"\0".join((b"", user.encode(), password.encode()))))

    def takes(self, user: str, password: str) -> bool:
        found = self.begin(user, password)
        try:
            reply = finish(found.steps, found.call) if isinstance(found, Rest) else found
        except AuthenticationFailedError:
            return False
        assert reply.proven is not None
        return str(reply.proven.principal) == f"User:{user}"

    def is_remembered(self, user: str, password: str) -> bool:
        return not isinstance(self.begin(user, password), Rest)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_the_credential_of_either_mechanism(server: Server, mechanism: ScramMechanism) -> None:
    server.set("Jürgen, =", "päss\twörd", mechanism)
    assert server.takes("Jürgen, =", "päss\twörd")
    assert not server.takes("Jürgen, =", "päss\twörd ")


def test_the_stronger_mechanism_counts(server: Server) -> None:
    server.set("alice", "another", SCRAM_SHA_512)
    assert (server.takes("alice", "another"), server.takes("alice", "secret")) == (True, False)


def test_an_unknown_user_costs_as_much_as_a_known_one(server: Server) -> None:
    known, unknown = server.begin("alice", "wrong"), server.begin("mallory", "wrong")
    assert isinstance(known, Rest)
    assert isinstance(unknown, Rest)
    assert not server.takes("mallory", "wrong")


def test_only_what_was_right_is_remembered(server: Server) -> None:
    assert not server.is_remembered("alice", "secret")
    server.takes("alice", "wrong")
    assert not server.is_remembered("alice", "wrong")
    server.takes("alice", "secret")
    assert server.is_remembered("alice", "secret")
    assert not server.is_remembered("alice", "wrong")


def test_another_credential_ends_what_was_remembered(server: Server) -> None:
    server.takes("alice", "secret")
    server.set("alice", "another")
    assert (server.takes("alice", "secret"), server.takes("alice", "another")) == (False, True)
    server.image.replay(ScramCredentialRemoved(user="alice", mechanism="SCRAM-SHA-256"))
    assert not server.takes("alice", "another")


@pytest.mark.parametrize("change", ["deleted", "another password", "another mechanism"])
def test_a_user_that_changes_while_its_key_is_derived(server: Server, change: str) -> None:
    rest = server.begin("alice", "secret")
    assert isinstance(rest, Rest)
    if change == "deleted":
        server.image.replay(ScramCredentialRemoved(user="alice", mechanism="SCRAM-SHA-256"))
    elif change == "another password":
        server.set("alice", "another")
    else:
        server.set("alice", "another", SCRAM_SHA_512)
    with pytest.raises(AuthenticationFailedError):
        resume(rest.steps, rest.call)


def test_what_is_remembered_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "REMEMBERED_MAX", 2)
    for user in ("bob", "carol"):
        server.set(user, "secret")
    for user in ("alice", "bob", "alice", "carol"):
        assert server.takes(user, "secret")
    assert server.is_remembered("alice", "secret")
    assert not server.is_remembered("bob", "secret")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice\0secret",
        b"\0alice",
        b"\0\0secret",
        b"\0alice\0",
        b"\0alice\0secret\0",
        b"admin\0alice\0secret",
        b"\0" + b"a" * 1025 + b"\0secret",
        b"\0alice\0" + b"s" * 4097,
        b"\0\xc3\0secret",
    ],
)
def test_messages_that_are_refused_before_anything_is_derived(server: Server, token: bytes) -> None:
    with pytest.raises(AuthenticationFailedError):
        begin(PlainExchange(server.credentials, server.remembered).reply(token))


def test_the_authorization_id_may_be_the_user(server: Server) -> None:
    exchange = PlainExchange(server.credentials, server.remembered)
    assert finish(exchange.reply(b"alice\0alice\0secret")).proven is not None
