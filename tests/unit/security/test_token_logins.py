"""SCRAM with delegation tokens: who a client with a token is, and which are refused."""

import base64

import pytest

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import DelegationTokenChanged, DelegationTokenRemoved
from barnabas.model.errors import ConfigError
from barnabas.model.steps import begin, finish
from barnabas.model.timers import Timers
from barnabas.security import token_credentials
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Proven
from barnabas.security.scram import Credentials, ScramExchange
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import (
    SCRAM_BY_NAME,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramMechanism,
    credential,
)
from barnabas.security.token_credentials import TokenCredentials
from barnabas.security.token_signing import TokenSigner

MECHANISMS = pytest.mark.parametrize("mechanism", SCRAM_BY_NAME.values(), ids=lambda m: m.name)
NOW_MS, HOUR_MS = 1_700_000_000_000, 3_600_000


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


def token(token_id: str, expires_ms: int = NOW_MS + HOUR_MS) -> DelegationTokenChanged:
    return DelegationTokenChanged(
        token_id=token_id,
        owner="User:al:ice",
        requester="User:admin",
        renewers=[],
        issued_ms=NOW_MS,
        expires_ms=expires_ms,
        ends_ms=NOW_MS + 2 * HOUR_MS,
    )


class Cluster:
    """A broker's view of the tokens of its cluster."""

    def __init__(self, secret: str = "a secret of the whole cluster") -> None:
        self.image, self.timers, self.signer = SecurityImage(), Timers(), TokenSigner()
        self.timers.wall_ms = NOW_MS
        if secret:
            self.signer.use(secret)
        self.tokens = TokenCredentials(self.signer, lambda: self.image, self.timers)
        self.token_id = "AAECAwQFBgcICQoLDA0ODw"
        self.image.replay(token(self.token_id))

    @property
    def password(self) -> str:
        return base64.b64encode(self.signer.hmac_of(self.token_id)).decode()

    def log_in(
        self, mechanism: ScramMechanism, user: str, password: str, *, has_token: bool = True
    ) -> Proven:
        """Authenticate with our own client."""
        credentials = Credentials(lambda: self.image, random_bytes)
        exchange = ScramExchange(mechanism, credentials, self.tokens, random_bytes)
        client = ScramClient(mechanism, user, password, b"nonce", has_token=has_token)
        first = finish(exchange.reply(client.first()))
        last = finish(exchange.reply(client.final(first.token)))
        client.check(last.token)
        assert last.proven is not None
        return last.proven


@MECHANISMS
def test_a_client_with_a_token_is_its_owner_until_it_expires(mechanism: ScramMechanism) -> None:
    cluster = Cluster()
    proven = cluster.log_in(mechanism, cluster.token_id, cluster.password)
    assert (proven.principal.kind, proven.principal.name) == ("User", "al:ice")
    assert (proven.principal.is_by_token, proven.lifetime_ms) == (True, HOUR_MS)
    cluster.timers.wall_ms += HOUR_MS - 1
    assert cluster.log_in(mechanism, cluster.token_id, cluster.password).lifetime_ms == 1


def test_another_broker_with_the_secret_takes_the_same_hmac() -> None:
    password = Cluster().password
    other = Cluster()
    assert other.log_in(SCRAM_SHA_256, other.token_id, password).lifetime_ms == HOUR_MS
    stranger = Cluster("the secret of another cluster")
    with pytest.raises(AuthenticationFailedError, match="HMAC"):
        stranger.log_in(SCRAM_SHA_256, stranger.token_id, password)


@pytest.mark.parametrize("has_token", [True, False])
def test_a_token_is_no_user_and_a_user_no_token(*, has_token: bool) -> None:
    cluster = Cluster()
    cluster.image.replay(credential(SCRAM_SHA_256, "alice", "password", b"salt" * 8, 4096))
    user, password = ("alice", "password") if has_token else (cluster.token_id, cluster.password)
    with pytest.raises(AuthenticationFailedError, match="no such"):
        cluster.log_in(SCRAM_SHA_256, user, password, has_token=has_token)


def test_an_expired_token() -> None:
    cluster = Cluster()
    cluster.log_in(SCRAM_SHA_512, cluster.token_id, cluster.password)  # its keys are remembered
    cluster.timers.wall_ms += HOUR_MS
    with pytest.raises(AuthenticationFailedError, match="expired"):
        cluster.log_in(SCRAM_SHA_512, cluster.token_id, cluster.password)
    cluster.image.replay(token(cluster.token_id, NOW_MS + 2 * HOUR_MS))
    assert cluster.log_in(SCRAM_SHA_512, cluster.token_id, cluster.password).lifetime_ms == HOUR_MS


def test_a_removed_token() -> None:
    cluster = Cluster()
    cluster.log_in(SCRAM_SHA_512, cluster.token_id, cluster.password)
    cluster.image.replay(DelegationTokenRemoved(token_id=cluster.token_id))
    with pytest.raises(AuthenticationFailedError, match="no such delegation token"):
        cluster.log_in(SCRAM_SHA_512, cluster.token_id, cluster.password)


def test_a_token_that_is_removed_while_its_keys_are_derived() -> None:
    cluster = Cluster()
    credentials = Credentials(lambda: cluster.image, random_bytes)
    exchange = ScramExchange(SCRAM_SHA_256, credentials, cluster.tokens, random_bytes)
    client = ScramClient(
        SCRAM_SHA_256, cluster.token_id, cluster.password, b"nonce", has_token=True
    )
    first = finish(exchange.reply(client.first()))
    steps = exchange.reply(client.final(first.token))
    call = next(steps)
    assert call is not None
    cluster.image.replay(DelegationTokenRemoved(token_id=cluster.token_id))
    with pytest.raises(AuthenticationFailedError, match="no such delegation token"):
        steps.send(call())


def test_the_keys_of_a_token_are_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivation takes milliseconds and runs on a thread; repeated logins need none."""
    monkeypatch.setattr(token_credentials, "REMEMBERED_MAX", 1)
    cluster = Cluster()

    def is_derived(mechanism: ScramMechanism) -> bool:
        steps = cluster.tokens.keys(cluster.token_id, mechanism)
        began = begin(steps)
        if not isinstance(began, tuple):
            return False
        finish(steps, began.call)
        return True

    asked = [SCRAM_SHA_256, SCRAM_SHA_256, SCRAM_SHA_512, SCRAM_SHA_256]
    assert [is_derived(mechanism) for mechanism in asked] == [True, False, True, True]


def test_a_broker_without_the_secret_takes_no_tokens() -> None:
    cluster = Cluster(secret="")
    with pytest.raises(AuthenticationFailedError, match="no secret"):
        cluster.log_in(SCRAM_SHA_256, cluster.token_id, "x")


def test_an_hmac_leads_to_its_token_alone() -> None:
    signer = Cluster().signer
    token_id = signer.new_id(random_bytes)
    hmac = signer.hmac_of(token_id)
    assert (signer.find(hmac), len(hmac)) == (token_id, 80)
    wrong = [b"", hmac[:16], hmac[:-1], hmac + b"x", bytes(80), hmac[16:] + hmac[:16]]
    assert [signer.find(each) for each in wrong] == [None] * len(wrong)
    assert Cluster("the secret of another cluster").signer.find(hmac) is None


def test_no_id_looks_like_an_option() -> None:
    first_bits = iter([b"\xf8", b"\xfb", b"\x00"])  # 0xf8 is `-` in the alphabet of ids
    made = TokenSigner().new_id(lambda count: next(first_bits) + bytes(count - 1))
    assert made[0] == "A"


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_secret_that_can_be_guessed(secret: str) -> None:
    with pytest.raises(ConfigError, match="16 bytes"):
        TokenSigner().use(secret)


def test_a_secret_is_not_shown() -> None:
    signer = TokenSigner()
    signer.use("planted-secret-of-the-cluster")
    assert "planted" not in repr(signer) + str(vars(Cluster().tokens))
