"""Dialogues of clients with a SASL listener, from the first frame to the last."""

from struct import Struct
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.authenticator import FAILED_TEXT
from barnabas.server.kafka_session import KafkaSession
from tests.support.security.sasl_talk import ALL, PLAIN_TOKEN, SaslTalk, alice
from tests.support.talk.one_connection import Asked
from tests.support.talk.requests import fetch_request

FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
METADATA = MetadataRequest(topics=[])
LENGTH = Struct(">i")


def raw(token: bytes) -> bytes:
    return LENGTH.pack(len(token)) + token


def is_refused(talk: SaslTalk) -> bool:
    """Tell whether the broker reads no more from the client, and closes the connection."""
    return talk.connection.closed and len(talk.problems) == 1


@pytest.fixture
def talk() -> SaslTalk:
    return SaslTalk()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_scram(talk: SaslTalk, mechanism: str, version: int) -> None:
    answer: Any = talk.scram(mechanism, version=version)
    assert (answer.error_code, answer.auth_bytes[:2]) == (0, b"v=")
    assert talk.principal == "User:alice"
    assert talk.is_served()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain(talk: SaslTalk, version: int) -> None:
    handshake: Any = talk.handshake("PLAIN")
    assert (handshake.error_code, handshake.mechanisms) == (0, list(ALL))
    answer: Any = talk.token(PLAIN_TOKEN, version)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert talk.principal == "User:alice"
    assert talk.is_served()


@pytest.mark.parametrize("version", range(5))
def test_api_versions_comes_first(talk: SaslTalk, version: int) -> None:
    answer: Any = talk.ask(VERSIONS, version)
    assert {17, 36} <= {each.api_key for each in answer.api_keys}
    answer = talk.scram("SCRAM-SHA-512")
    assert answer.error_code == 0


def test_an_unknown_version_of_api_versions_is_asked_again(talk: SaslTalk) -> None:
    content = bytearray(Asked(VERSIONS, 4).frame(1))
    content[6:8] = (9).to_bytes(2, "big")
    talk.arrive(bytes(content))
    assert talk.answers.pop()[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    assert talk.ask(VERSIONS, 4).error_code == 0
    assert not talk.connection.closed


def test_once_authenticated_the_kafka_session_serves_alone(talk: SaslTalk) -> None:
    talk.scram("SCRAM-SHA-256")
    assert type(talk.connection.session) is KafkaSession


@pytest.mark.parametrize("piece_bytes", [1, 7, 10_000])
def test_a_client_that_waits_for_no_answer(talk: SaslTalk, piece_bytes: int) -> None:
    """It sends its login and its first request at once. The password is checked on a thread."""
    requests = [
        Asked(VERSIONS, 4),
        Asked(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        Asked(SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), 2),
        Asked(METADATA, 12),
        Asked(METADATA, 12),
    ]
    content = b"".join(each.frame(number) for number, each in enumerate(requests, 1))
    for start in range(0, len(content), piece_bytes):
        talk.deliver(content[start : start + piece_bytes])
    numbers = [int.from_bytes(answer[:4]) for answer in talk.answers]
    assert numbers == [1, 2, 3, 4, 5]
    assert talk.principal == "User:alice"


@pytest.mark.parametrize("request_", [METADATA, fetch_request("t")], ids=["Metadata", "Fetch"])
@pytest.mark.parametrize("after", ["nothing", "versions", "handshake", "token"])
def test_another_api_closes_the_connection_unanswered(
    talk: SaslTalk, request_: MetadataRequest | FetchRequest, after: str
) -> None:
    if after == "versions":
        talk.ask(VERSIONS, 4)
    elif after != "nothing":
        talk.handshake("SCRAM-SHA-256")
    if after == "token":
        talk.token(b"n,,n=alice,r=abc")
    before = len(talk.answers)
    talk.send(request_, 11)
    assert (len(talk.answers), is_refused(talk)) == (before, True)


def test_what_follows_a_refused_request_is_not_read(talk: SaslTalk) -> None:
    content = Asked(METADATA, 12).frame(1) + Asked(VERSIONS, 4).frame(2)
    talk.arrive(content)
    assert (talk.answers, is_refused(talk)) == ([], True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([VERSIONS, 4], [VERSIONS, 4]),
        ([SaslHandshakeRequest(mechanism="PLAIN"), 1], [VERSIONS, 4]),
        (
            [SaslHandshakeRequest(mechanism="PLAIN"), 1],
            [SaslHandshakeRequest(mechanism="PLAIN"), 1],
        ),
        ([VERSIONS, 4], [SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), 2]),
        (None, [SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), 2]),
    ],
)
def test_requests_out_of_order(talk: SaslTalk, first: list[Any] | None, second: list[Any]) -> None:
    if first is not None:
        talk.ask(*first)
    answer: Any = talk.ask(*second)
    assert (answer.error_code, is_refused(talk)) == (ErrorCode.ILLEGAL_SASL_STATE, True)


@pytest.mark.parametrize("mechanism", ["", "GSSAPI", "plain", "SCRAM-SHA-1", "OAUTHBEARER"])
def test_an_unknown_mechanism_gets_the_list(talk: SaslTalk, mechanism: str) -> None:
    answer: Any = talk.handshake(mechanism)
    assert (answer.error_code, answer.mechanisms) == (33, list(ALL))
    assert is_refused(talk)


def test_a_mechanism_that_the_listener_does_not_have() -> None:
    talk = SaslTalk(mechanisms=("SCRAM-SHA-512",))
    answer: Any = talk.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (33, ["SCRAM-SHA-512"])


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [
        ("PLAIN", b"\0alice\0wrong"),
        ("PLAIN", b"\0mallory\0open sesame"),
        ("PLAIN", b"bob\0alice\0open sesame"),
        ("PLAIN", b"\0alice\0"),
        ("PLAIN", b"garbage"),
        ("PLAIN", b"\0\xff\0x"),
        ("PLAIN", b""),
        ("SCRAM-SHA-256", b"garbage"),
        ("SCRAM-SHA-256", b"p=tls-unique,,n=alice,r=abc"),
        ("SCRAM-SHA-512", b"\0alice\0open sesame"),
    ],
)
def test_failures_are_all_alike(talk: SaslTalk, mechanism: str, token: bytes) -> None:
    """One text for every reason, after a delay in which nothing is read."""
    talk.handshake(mechanism)
    asked = talk.send(SaslAuthenticateRequest(auth_bytes=token), 2)
    talk.arrive(b"x" * 100)
    assert (len(talk.answers), talk.unread_bytes) == (1, 100)
    talk.pass_time(99)
    assert len(talk.answers) == 1
    talk.pass_time(1)
    answer: Any = talk.answer_to(asked)
    assert (answer.error_code, answer.error_message) == (FAILED, FAILED_TEXT)
    assert (answer.auth_bytes, is_refused(talk)) == (b"", True)


def test_a_wrong_password_with_scram(talk: SaslTalk) -> None:
    answer: Any = talk.scram("SCRAM-SHA-256", password="wrong")
    assert (answer.error_code, answer.error_message, is_refused(talk)) == (58, FAILED_TEXT, True)


def test_a_client_that_leaves_before_it_is_refused(talk: SaslTalk) -> None:
    talk.handshake("PLAIN")
    talk.send(SaslAuthenticateRequest(auth_bytes=b"garbage"), 2)
    talk.connection.close()
    talk.pass_time(1_000)
    assert (len(talk.answers), talk.problems) == (1, [])


def test_raw_tokens_after_a_handshake_of_version_0(talk: SaslTalk) -> None:
    talk.handshake("PLAIN", version=0)
    talk.arrive(raw(PLAIN_TOKEN))
    assert (talk.answers[-1], talk.principal) == (b"", "User:alice")
    assert talk.answers[1:] == [b""]


def test_short_raw_tokens() -> None:
    talk = SaslTalk()
    talk.handshake("PLAIN", version=0)
    talk.arrive(raw(b"\0a\0b"))
    assert talk.problems == []  # it is handled, and fails after the delay
    talk.pass_time(100)
    assert is_refused(talk)
    talk = SaslTalk()
    talk.handshake("PLAIN", version=1)
    talk.arrive(raw(b"\0a\0b"))
    assert is_refused(talk)


def test_a_bad_raw_token_closes_the_connection_unanswered(talk: SaslTalk) -> None:
    talk.handshake("PLAIN", version=0)
    talk.arrive(raw(b"\0alice\0wrong"))
    assert not talk.connection.closed
    talk.pass_time(100)
    assert (len(talk.answers), is_refused(talk)) == (1, True)


@pytest.mark.parametrize("pieces", [1, 7, 100_000])
def test_large_frames_are_for_clients_that_authenticated(pieces: int) -> None:
    talk = SaslTalk(SecuritySettings(sasl_receive_bytes_max=2_000))
    talk.handshake("PLAIN")
    content = Asked(SaslAuthenticateRequest(auth_bytes=bytes(2_000)), 2).frame(2)
    for start in range(0, len(content), pieces):
        if not talk.connection.closed:
            talk.arrive(content[start : start + pieces])
    assert (len(talk.answers), is_refused(talk)) == (1, True)


def test_a_large_frame_is_refused_before_it_arrives() -> None:
    talk = SaslTalk()
    talk.arrive(LENGTH.pack(512 * 1024 + 1) + b"\0\x11")
    assert is_refused(talk)


@pytest.mark.parametrize("step", ["connect", "versions", "handshake", "token"])
def test_a_client_has_ten_seconds(talk: SaslTalk, step: str) -> None:
    if step == "versions":
        talk.ask(VERSIONS, 4)
    if step in ("handshake", "token"):
        talk.handshake("SCRAM-SHA-256")
    if step == "token":
        talk.token(b"n,,n=alice,r=abc")
    talk.pass_time(9_999)
    assert not talk.connection.closed
    talk.pass_time(1)
    assert is_refused(talk)


def test_one_that_has_authenticated_is_not_timed(talk: SaslTalk) -> None:
    talk.scram("SCRAM-SHA-512")
    talk.pass_time(60_000)
    assert talk.is_served()


def test_a_password_that_was_right_is_not_derived_again(
    talk: SaslTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.handshake("PLAIN")
    talk.token(PLAIN_TOKEN)
    node = talk.edge.node
    again = node.authentication.authenticator(talk.connection.listener)
    derived: list[bytes] = []

    def derive(mechanism: object, password: bytes, *_: object) -> bytes:
        derived.append(password)
        return bytes(64)

    monkeypatch.setattr("barnabas.security.plain.salt_password", derive)

    def authenticates(token: bytes) -> bool:
        from barnabas.model.steps import finish
        from barnabas.security.authentication_failures import AuthenticationFailedError
        from barnabas.security.plain import PlainExchange

        exchange = again._mechanisms["PLAIN"]()
        assert isinstance(exchange, PlainExchange)
        try:
            return finish(exchange.reply(token)).proven is not None
        except AuthenticationFailedError:
            return False

    assert (authenticates(PLAIN_TOKEN), derived) == (True, [])
    assert (authenticates(b"\0alice\0wrong"), len(derived)) == (False, 1)
    node.commit(alice("another"), talk.edge.now_ms)
    talk.edge.settle()
    assert (authenticates(PLAIN_TOKEN), len(derived)) == (False, 2)


class TestReauthentication:
    """KIP-368."""

    @pytest.fixture
    def talk(self) -> SaslTalk:
        return SaslTalk(SecuritySettings(reauthentication_ms=5_000))

    def test_the_client_learns_its_lifetime(self, talk: SaslTalk) -> None:
        answer: Any = talk.scram("SCRAM-SHA-256")
        assert answer.session_lifetime_ms == 5_000

    def test_a_client_goes_on_as_long_as_it_authenticates_again(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        for _ in range(3):
            talk.pass_time(4_500)
            answer: Any = talk.scram("SCRAM-SHA-256")
            assert (answer.error_code, answer.session_lifetime_ms) == (0, 5_000)
            assert talk.is_served()

    @pytest.mark.parametrize("version", [0, 2])
    def test_after_the_expiry_a_request_closes_the_connection(
        self, talk: SaslTalk, version: int
    ) -> None:
        talk.scram("SCRAM-SHA-256", version=version)
        talk.pass_time(5_000)
        assert not talk.connection.closed
        before = len(talk.answers)
        talk.send(METADATA, 12)
        assert (len(talk.answers), is_refused(talk)) == (before, True)

    def test_after_the_expiry_the_client_may_still_authenticate(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        talk.pass_time(60_000)
        answer: Any = talk.scram("SCRAM-SHA-256")
        assert answer.error_code == 0
        assert talk.is_served()

    def test_once_a_second_at_most(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        talk.pass_time(2_000)
        talk.scram("SCRAM-SHA-256")
        talk.pass_time(900)
        answer: Any = talk.handshake("SCRAM-SHA-256")
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert talk.is_served()
        talk.pass_time(100)
        answer = talk.scram("SCRAM-SHA-256")
        assert answer.error_code == 0

    def test_with_the_same_mechanism(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        talk.pass_time(2_000)
        answer: Any = talk.handshake("PLAIN")
        assert answer.error_code == 0
        asked = talk.send(SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), 2)
        talk.pass_time(100)
        answer = talk.answer_to(asked)
        assert (answer.error_code, is_refused(talk)) == (58, True)

    def test_as_the_same_principal(self, talk: SaslTalk) -> None:
        from barnabas.security.scram_formulas import SCRAM_SHA_512, credential

        bob = credential(SCRAM_SHA_512, "bob", "bob's", b"salt" * 8, 4096)
        talk.edge.node.commit([bob], talk.edge.now_ms)
        talk.handshake("PLAIN")
        talk.token(PLAIN_TOKEN)
        talk.pass_time(2_000)
        talk.handshake("PLAIN")
        asked = talk.send(SaslAuthenticateRequest(auth_bytes=b"\0bob\0bob's"), 2)
        talk.pass_time(100)
        answer: Any = talk.answer_to(asked)
        assert (answer.error_code, is_refused(talk)) == (58, True)

    def test_a_password_that_was_changed_meanwhile(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        talk.edge.node.commit(alice("another"), talk.edge.now_ms)
        talk.edge.settle()
        assert talk.is_served()
        talk.pass_time(2_000)
        answer: Any = talk.scram("SCRAM-SHA-256")
        assert (answer.error_code, is_refused(talk)) == (58, True)

    def test_answers_keep_their_order(self, talk: SaslTalk) -> None:
        """A fetch that waits is answered before the handshake that follows it."""
        talk.edge.create("t", number=1)
        talk.scram("SCRAM-SHA-256")
        talk.pass_time(2_000)
        before = len(talk.answers)
        talk.send(fetch_request("t", max_wait_ms=500, min_bytes=1), 11)
        talk.send(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        assert len(talk.answers) == before
        talk.pass_time(500)
        numbers = [LENGTH.unpack(answer[:4])[0] for answer in talk.answers[before:]]
        assert numbers == [4, 5]

    def test_a_client_that_does_not_finish_in_time_is_closed(self, talk: SaslTalk) -> None:
        talk.scram("SCRAM-SHA-256")
        talk.handshake("SCRAM-SHA-256")
        talk.pass_time(10_000)
        assert is_refused(talk)


def test_without_a_lifetime_a_client_cannot_authenticate_again(talk: SaslTalk) -> None:
    talk.scram("SCRAM-SHA-256")
    talk.pass_time(2_000)
    answer: Any = talk.handshake("SCRAM-SHA-256")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert talk.is_served()
