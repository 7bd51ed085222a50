"""The session of a client that logs in with a delegation token: who it is, and how long."""

import base64
from typing import Any

import pytest

from barnabas.metadata.security_records import DelegationTokenChanged, DelegationTokenRemoved
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import SCRAM_BY_NAME
from tests.support.security.sasl_talk import SaslTalk

MECHANISM = "SCRAM-SHA-256"
TOKEN_ID = "AAECAwQFBgcICQoLDA0ODw"
LIFE_MS = 5_000
NOT_ALLOWED = 64


class TokenTalk(SaslTalk):
    """A client with a token of alice."""

    def __init__(self) -> None:
        super().__init__()
        self.pass_time(0)
        self.edge.node.authentication.signer.use("the secret of this cluster")
        self.renew()

    def renew(self) -> None:
        """Have the token expire later."""
        now_ms = self.edge.now_ms
        made = DelegationTokenChanged(
            token_id=TOKEN_ID,
            owner="User:alice",
            requester="User:alice",
            renewers=[],
            issued_ms=now_ms,
            expires_ms=now_ms + LIFE_MS,
            ends_ms=now_ms + 10 * LIFE_MS,
        )
        self.edge.do(lambda: self.edge.node.commit([made], now_ms))

    def log_in(self) -> Any:
        """Authenticate with the token; return the last answer."""
        hmac = self.edge.node.authentication.signer.hmac_of(TOKEN_ID)
        password = base64.b64encode(hmac).decode()
        self.handshake(MECHANISM)
        client = ScramClient(
            SCRAM_BY_NAME[MECHANISM], TOKEN_ID, password, b"client-nonce", has_token=True
        )
        first = self.token(client.first())
        request = SaslAuthenticateRequest(auth_bytes=client.final(first.auth_bytes))
        last = self.send(request, 2)
        if len(self.answers) == self._taken:
            self.pass_time(100)
        return self.answer_to(last)


@pytest.fixture
def talk() -> TokenTalk:
    return TokenTalk()


def test_the_session_lasts_as_long_as_the_token(talk: TokenTalk) -> None:
    answer = talk.log_in()
    assert (answer.error_code, answer.session_lifetime_ms) == (0, LIFE_MS)
    assert talk.principal == "User:alice"
    talk.pass_time(LIFE_MS - 1)
    assert talk.is_served()
    talk.pass_time(1)
    talk.send(MetadataRequest(topics=[]), 12)
    assert talk.connection.closed


def test_a_client_goes_on_with_a_token_that_was_renewed(talk: TokenTalk) -> None:
    talk.log_in()
    for _ in range(3):
        talk.pass_time(LIFE_MS - 100)
        talk.renew()
        answer = talk.log_in()
        assert (answer.error_code, answer.session_lifetime_ms) == (0, LIFE_MS)
        assert talk.is_served()


def test_a_client_cannot_go_on_with_a_token_that_has_expired(talk: TokenTalk) -> None:
    talk.log_in()
    talk.pass_time(LIFE_MS)
    assert talk.log_in().error_code == 58
    assert talk.connection.closed


def test_a_token_that_was_removed(talk: TokenTalk) -> None:
    removed = DelegationTokenRemoved(token_id=TOKEN_ID)
    talk.edge.do(lambda: talk.edge.node.commit([removed], talk.edge.now_ms))
    assert talk.log_in().error_code == 58


def test_a_client_with_a_token_gets_no_other(talk: TokenTalk) -> None:
    talk.log_in()
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    assert talk.ask(request, 1).error_code == NOT_ALLOWED


def test_a_client_that_used_its_password_gets_one(talk: TokenTalk) -> None:
    talk.scram(MECHANISM)
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    assert talk.ask(request, 1).error_code == 0
