"""A broker whose issuer of tokens is down when it starts, and later."""

from pathlib import Path

import pytest
from joserfc.jwk import ECKey

from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.security.issuer_site import IssuerSite
from tests.support.security.tokens import AUDIENCE, ISSUER, Issuer

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

NO_KEYS = "cannot read the keys for tokens"
PATIENCE_S = 90.0
"""The broker asks again for an unknown key after ten seconds."""
CONFIG = """\
listeners:
  LOCAL:
    listen: 127.0.0.1:0
  TOKENS:
    listen: 127.0.0.1:0
    protocol: SASL_PLAINTEXT
    mechanisms: [OAUTHBEARER]
security:
  oauth_keys: {keys}
  oauth_issuer: {issuer}
  oauth_audience: {audience}
"""


def is_accepted(broker: BrokerSubprocess, token: str) -> bool:
    """Log in with a token on a connection of its own."""
    host, _, port = broker.listeners["TOKENS"].rpartition(":")
    with RawClient((host, int(port))) as client:
        hello = client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1, SaslHandshakeResponse)
        assert hello.error_code == 0
        first = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=first), 2, SaslAuthenticateResponse)
        assert answer.error_code == 0
        return answer.auth_bytes == b""


def test_an_issuer_that_is_down(tmp_path: Path) -> None:
    """The broker starts without its issuer, continues with known keys, and recovers by itself."""
    issuer, site = Issuer(), IssuerSite(tmp_path / "issuer")
    later = ECKey.generate_key("P-256", {"kid": "later", "use": "sig"})
    config = tmp_path / "barnabas.yaml"
    config.write_text(CONFIG.format(keys=site.address, issuer=ISSUER, audience=AUDIENCE))
    broker = BrokerSubprocess(
        tmp_path / "data",
        arguments=("--config", str(config)),
        listener="LOCAL",
        environment={"SSL_CERT_FILE": site.authority},
    )
    with broker:
        told = broker.wait_for_log(NO_KEYS)
        assert site.address in told[0]["place"]
        assert "refused" in told[0]["problem"]
        assert not is_accepted(broker, issuer.token())

        site.publish(issuer.published())
        with site:
            eventually(lambda: is_accepted(broker, issuer.token()), PATIENCE_S)

        failures = len(broker.log_lines(NO_KEYS))
        assert is_accepted(broker, issuer.token(key=issuer.ec))
        eventually(
            lambda: (
                not is_accepted(broker, issuer.token(key=later))
                and len(broker.log_lines(NO_KEYS)) > failures
            ),
            PATIENCE_S,
        )
        assert is_accepted(broker, issuer.token())

        site.publish(issuer.published(issuer.rsa, later))
        with site:
            eventually(lambda: is_accepted(broker, issuer.token(key=later)), PATIENCE_S)
        assert not is_accepted(broker, issuer.token(key=issuer.ec))
        assert broker.terminate() == 0
