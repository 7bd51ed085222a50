"""The authenticator alone: frames in, outcomes out, whatever the mechanism."""

from typing import Any

import pytest

from barnabas.model.callers import Principal
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.steps import Rest, Steps, begin, finish, resume
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.authenticator import (
    FAILED_TEXT,
    Answer,
    Authenticated,
    Authenticator,
    Outcome,
    PassOn,
    Refused,
)
from barnabas.security.mechanism import Proven, Reply
from barnabas.sim.frames import frame_of

VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")
SLOW, TWO_STEPS, EXPIRING = "SLOW", "TWO-STEPS", "EXPIRING"


class Exchange:
    """A mechanism of a test: `user` authenticates the client, `more` continues, all else fails."""

    def __init__(self, name: str) -> None:
        self._name = name

    def reply(self, token: bytes) -> Steps[Reply]:
        if self._name == SLOW:
            token = yield lambda: token
        if token == b"more":
            return Reply(b"go on")
        if token.startswith(b"fail"):
            raise AuthenticationFailedError("the secret reason")
        lifetime_ms = 7_000 if self._name == EXPIRING else None
        return Reply(b"done", Proven(Principal("User", token.decode()), lifetime_ms))


MECHANISMS = {name: lambda name=name: Exchange(name) for name in (SLOW, TWO_STEPS, EXPIRING)}


def frame(request: Message, version: int) -> bytes:
    key = KEYS[type(request).__name__]
    return frame_of(key, version, 7, "client", encoder(type(request), version)(request))


def handshake(name: str, version: int = 1) -> bytes:
    return frame(SaslHandshakeRequest(mechanism=name), version)


def token(content: bytes, version: int = 2) -> bytes:
    return frame(SaslAuthenticateRequest(auth_bytes=content), version)


def decoded(outcome: Outcome, key: int, version: int) -> Any:
    assert not isinstance(outcome, PassOn)
    assert outcome.content is not None
    head = 5 if version >= APIS[key].flexible_from else 4
    return decode_exact(response_class(key), version, outcome.content, head)


@pytest.fixture
def client() -> Authenticator:
    return Authenticator(MECHANISMS)


def test_a_dialogue(client: Authenticator) -> None:
    assert finish(client.receive(frame(VERSIONS, 4))) == PassOn()
    assert client.state.name == "HANDSHAKE"
    answer = finish(client.receive(handshake(TWO_STEPS)))
    assert isinstance(answer, Answer)
    assert decoded(answer, 17, 1).mechanisms == [SLOW, TWO_STEPS, EXPIRING]
    answer = finish(client.receive(token(b"more")))
    assert isinstance(answer, Answer)
    assert decoded(answer, 36, 2).auth_bytes == b"go on"
    last = finish(client.receive(token(b"alice")))
    assert isinstance(last, Authenticated)
    assert (str(last.principal), last.mechanism, last.lifetime_ms) == (
        "User:alice",
        TWO_STEPS,
        None,
    )
    assert decoded(last, 36, 2).auth_bytes == b"done"
    assert client.state.name == "DONE"


def test_work_that_takes_long_is_left_to_a_thread(client: Authenticator) -> None:
    finish(client.receive(handshake(SLOW)))
    content = bytearray(token(b"alice"))
    rest = begin(client.receive(memoryview(content)))
    content[:] = b"\xff" * len(content)  # as the next frame would in the receive buffer
    assert isinstance(rest, Rest)
    assert client.state.name == "EXCHANGE"
    with pytest.raises(StopIteration) as end:
        resume(rest.steps, rest.call)
    assert str(end.value.value.principal) == "User:alice"


@pytest.mark.parametrize(("limit_ms", "told_ms"), [(0, 7_000), (5_000, 5_000), (9_000, 7_000)])
def test_a_session_lasts_as_long_as_the_shorter_limit(limit_ms: int, told_ms: int) -> None:
    client = Authenticator(MECHANISMS, limit_ms)
    finish(client.receive(handshake(EXPIRING)))
    last = finish(client.receive(token(b"alice")))
    assert isinstance(last, Authenticated)
    assert (last.lifetime_ms, decoded(last, 36, 2).session_lifetime_ms) == (told_ms, told_ms)


def test_a_failure_is_delayed_and_says_nothing(client: Authenticator) -> None:
    finish(client.receive(handshake(TWO_STEPS)))
    refused = finish(client.receive(token(b"fail")))
    assert isinstance(refused, Refused)
    assert (refused.is_delayed, refused.reason) == (True, "the secret reason")
    answer = decoded(refused, 36, 2)
    assert (answer.error_code, answer.error_message) == (58, FAILED_TEXT)
    assert client.state.name == "FAILED"


def test_nothing_is_handled_after_a_failure(client: Authenticator) -> None:
    finish(client.receive(handshake("none")))
    for request in (frame(VERSIONS, 4), handshake(TWO_STEPS), token(b"alice")):
        refused = finish(client.receive(request))
        assert isinstance(refused, Refused)
    assert client.principal is None


@pytest.mark.parametrize("name", sorted(set(APIS) - {17, 18, 36}))
def test_no_other_api_is_handled(client: Authenticator, name: int) -> None:
    version = APIS[name].low
    with pytest.raises(WireError):
        finish(client.receive(frame_of(name, version, 1, "c", b"")))
    assert client.state.name == "FAILED"


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_versions_that_are_not_served(client: Authenticator, version: int) -> None:
    with pytest.raises(WireError):
        finish(client.receive(frame_of(ApiKey.SASL_HANDSHAKE, version, 1, "c", b"\0\5PLAIN")))


@pytest.mark.parametrize("key", [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE])
def test_bodies_that_are_damaged(client: Authenticator, key: ApiKey) -> None:
    if key == ApiKey.SASL_AUTHENTICATE:
        finish(client.receive(handshake(TWO_STEPS)))
    with pytest.raises(WireError):
        finish(client.receive(frame_of(key, 1, 1, "c", b"\x7f\xff\xff\xff")))


class TestRaw:
    """After a handshake of version 0."""

    def test_a_dialogue(self, client: Authenticator) -> None:
        finish(client.receive(handshake(TWO_STEPS, 0)))
        assert client.takes_raw_tokens
        assert finish(client.receive(b"more")) == Answer(b"go on")
        last = finish(client.receive(b"alice"))
        assert isinstance(last, Authenticated)
        assert (last.content, str(last.principal)) == (b"done", "User:alice")
        assert not client.takes_raw_tokens

    def test_a_failure_has_no_answer(self, client: Authenticator) -> None:
        finish(client.receive(handshake(TWO_STEPS, 0)))
        refused = finish(client.receive(b"fail"))
        assert isinstance(refused, Refused)
        assert (refused.content, refused.is_delayed) == (None, True)


class TestAgain:
    @pytest.fixture
    def client(self, client: Authenticator) -> Authenticator:
        finish(client.receive(handshake(TWO_STEPS)))
        finish(client.receive(token(b"alice")))
        client.authenticate_again()
        return client

    def test_as_the_same(self, client: Authenticator) -> None:
        finish(client.receive(handshake(TWO_STEPS)))
        assert isinstance(finish(client.receive(token(b"alice"))), Authenticated)

    @pytest.mark.parametrize(("name", "user"), [(TWO_STEPS, b"bob"), (EXPIRING, b"alice")])
    def test_as_another(self, client: Authenticator, name: str, user: bytes) -> None:
        assert isinstance(finish(client.receive(handshake(name))), Answer)
        refused = finish(client.receive(token(user)))
        assert isinstance(refused, Refused)
        assert (refused.is_delayed, decoded(refused, 36, 2).error_code) == (True, 58)

    def test_without_a_handshake(self, client: Authenticator) -> None:
        refused = finish(client.receive(token(b"alice")))
        assert decoded(refused, 36, 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
