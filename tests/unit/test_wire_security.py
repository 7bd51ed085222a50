"""The wire client over TLS and with a login: what works, and what it says if it does not."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing.broker import Broker
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.link import Link
from barnabas.wire.link_security import link_security
from barnabas.wire.pipeline import Pipeline, Pool, ReadingPipeline
from barnabas.wire.wire_failures import DemandError, LinkError, UnsupportedPropertyError
from tests.support.security.sasl_broker import MECHANISMS, SaslBroker, properties
from tests.support.security.tls_front import TlsFront, tls_front
from tests.support.security.tokens import AUDIENCE, ISSUER, Issuer

METADATA = MetadataRequest(topics=[])


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def sasl(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    keys: Path = tmp_path_factory.mktemp("oauth") / "keys.json"
    keys.write_text(issuer.published())
    security = SecuritySettings(
        oauth_keys=str(keys),
        oauth_issuer=ISSUER,
        oauth_audience=AUDIENCE,
        reauthentication_ms=1_000,
    )
    with SaslBroker(mechanisms=(*MECHANISMS, "OAUTHBEARER"), security=security) as running:
        yield running


@pytest.fixture(scope="module")
def plain() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def front(plain: Broker, tmp_path: Path) -> Iterator[TlsFront]:
    with tls_front(plain.bootstrap) as running:
        running.authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        yield running


def names(wire: Wire) -> int:
    return len(wire.metadata().brokers)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_with_a_password(sasl: SaslBroker, mechanism: str) -> None:
    with Wire(properties(sasl.bootstrap, mechanism)) as wire:
        assert names(wire) == 1
        assert names(wire) == 1


def oauth(sasl: SaslBroker, token: str) -> dict[str, object]:
    return {
        "bootstrap.servers": sasl.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.token": token,
    }


def test_a_login_with_a_token(sasl: SaslBroker, issuer: Issuer) -> None:
    with Wire(oauth(sasl, issuer.token())) as wire:
        assert names(wire) == 1
    given = oauth(sasl, "")
    given["oauth_cb"] = lambda _: (issuer.token(), 0.0)
    with Wire(given) as wire:
        assert names(wire) == 1


def test_a_bad_token(sasl: SaslBroker) -> None:
    token = Issuer().token()
    with Wire(oauth(sasl, token)) as wire, pytest.raises(LinkError, match="new token") as raised:
        wire.metadata()
    assert token not in str(raised.value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password(sasl: SaslBroker, mechanism: str) -> None:
    given = properties(sasl.bootstrap, mechanism, password="planted-secret")
    with (
        Wire(given) as wire,
        pytest.raises(LinkError, match="refused the login of user 'admin'") as e,
    ):
        wire.metadata()
    assert "planted-secret" not in str(e.value)


def test_a_link_logs_in_again_before_its_session_ends(
    sasl: SaslBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker ends sessions after a second: the link's clock says that it is over."""
    security = link_security(properties(sasl.bootstrap))
    host, _, port = sasl.bootstrap.rpartition(":")
    link = Link(host, int(port), security=security)
    logins: list[str] = []
    assert security is not None
    assert security.login is not None
    original = type(security.login).log_in

    def log_in(*arguments: object) -> int:
        logins.append("again")
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(type(security.login), "log_in", log_in)
    link._expires_s = 0.0
    with contextlib.closing(link):
        assert link.ask(METADATA, MetadataResponse).brokers
        assert link.ask(METADATA, MetadataResponse).brokers
    assert logins == ["again"]


def test_without_a_login(sasl: SaslBroker) -> None:
    with (
        Wire({"bootstrap.servers": sasl.bootstrap}) as wire,
        pytest.raises(DemandError, match=r"set security.protocol and sasl.mechanism"),
    ):
        wire.metadata()


def test_a_login_that_is_not_asked_for(plain: Broker) -> None:
    with (
        Wire(properties(plain.bootstrap)) as wire,
        pytest.raises(LinkError, match="takes no login"),
    ):
        wire.metadata()


def test_a_mechanism_that_is_not_offered(tmp_path: Path) -> None:
    with (
        SaslBroker(tmp_path, mechanisms=("SCRAM-SHA-512",)) as broker,
        Wire(properties(broker.bootstrap, "PLAIN")) as wire,
        pytest.raises(LinkError, match=r"set sasl.mechanism to one of SCRAM-SHA-512"),
    ):
        wire.metadata()


def tls(front: TlsFront, tmp_path: Path, **others: str) -> dict[str, object]:
    given = {
        "bootstrap.servers": f"127.0.0.1:{front.port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }
    return {**given, **{name.replace("_", "."): value for name, value in others.items()}}


def pipeline_to(front: TlsFront, given: dict[str, object]) -> ReadingPipeline:
    return ReadingPipeline("127.0.0.1", front.port, security=link_security(given))


def test_tls(front: TlsFront, tmp_path: Path) -> None:
    given = tls(front, tmp_path)
    with contextlib.closing(pipeline_to(front, given)) as pipeline:
        for _ in range(3):
            pipeline.send(METADATA)
        for _ in range(3):
            assert pipeline.receive(MetadataResponse).brokers
    pool = Pool("test", {}, security=link_security(given))
    assert isinstance(pool.to("127.0.0.1", front.port), Pipeline)
    pool.close()


def test_tls_with_a_client_certificate(front: TlsFront, tmp_path: Path) -> None:
    front.require_certificates()
    issued = front.authority.issue_cert("client.test", common_name="alice")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    given = tls(front, tmp_path)
    given["ssl.certificate.location"] = str(tmp_path / "client.pem")
    with contextlib.closing(pipeline_to(front, given)) as pipeline:
        assert pipeline.ask(METADATA, MetadataResponse).brokers
    assert "alice" in str(front.subjects)


def test_an_authority_that_is_not_known(front: TlsFront, tmp_path: Path) -> None:
    given = tls(front, tmp_path)
    del given["ssl.ca.location"]
    with Wire(given) as wire, pytest.raises(LinkError, match=r"set ssl.ca.location"):
        wire.metadata()


def test_a_certificate_for_another_name(front: TlsFront, tmp_path: Path) -> None:
    given = tls(front, tmp_path)
    given["bootstrap.servers"] = f"localhost:{front.port}"
    with Wire(given) as wire, pytest.raises(LinkError, match="is not accepted"):
        wire.metadata()
    for name, value in (
        ("ssl.endpoint.identification.algorithm", "none"),
        ("enable.ssl.certificate.verification", "false"),
    ):
        security = link_security({**given, name: value})
        link = Link("localhost", front.port, security=security)
        assert link.ask(METADATA, MetadataResponse).brokers
        link.close()


def test_tls_on_a_plain_port(plain: Broker) -> None:
    given = {"bootstrap.servers": plain.bootstrap, "security.protocol": "SSL"}
    with Wire(given) as wire, pytest.raises(LinkError, match=r"check security.protocol"):
        wire.metadata()


def test_a_plain_client_on_a_tls_port(front: TlsFront) -> None:
    with (
        Wire({"bootstrap.servers": f"127.0.0.1:{front.port}"}) as wire,
        pytest.raises(LinkError, match=r"security.protocol"),
    ):
        wire.metadata()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"security.protocol": "TLS"}, "write one of PLAINTEXT"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/none"}, "no certificates"),
        (
            {"security.protocol": "SSL", "ssl.certificate.location": "/none"},
            "ssl.certificate.location /none",
        ),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "sasl.username and sasl.password",
        ),
    ],
)
def test_properties_that_are_wrong(given: dict[str, object], said: str) -> None:
    with pytest.raises(LinkError, match=said):
        link_security(given)


@pytest.mark.parametrize(
    "given",
    [
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
        {"security.protocol": "SSL", "ssl.keystore.location": "/store.p12"},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
    ],
)
def test_properties_that_librdkafka_alone_knows(given: dict[str, object]) -> None:
    with pytest.raises(UnsupportedPropertyError):
        link_security(given)


def test_secrets_do_not_show() -> None:
    security = link_security(properties("x:1", "PLAIN", "alice", "planted-secret"))
    assert "planted-secret" not in repr(security)
    assert "alice" in repr(security)


def test_plaintext_needs_nothing() -> None:
    assert link_security({"sasl.username": "ignored"}) is None
    assert link_security({"security.protocol": "plaintext"}) is None
