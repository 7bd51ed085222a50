"""What the settings of listeners say of mechanisms."""

import sys
from random import Random

import pytest

from barnabas.metadata.security_image import SecurityImage
from barnabas.model.callers import Listener
from barnabas.model.errors import ConfigError
from barnabas.model.security_settings import ListenerSettings, SecuritySettings
from barnabas.model.settings import Settings
from barnabas.model.steps import finish
from barnabas.model.timers import Timers
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.authentication import Authentication
from barnabas.security.authenticator import PassOn
from barnabas.sim.frames import frame_of


def authentication(
    *mechanisms: str, name: str = "SASL", security: SecuritySettings | None = None
) -> Authentication:
    listener = ListenerSettings(name=name, protocol="SASL_SSL", mechanisms=mechanisms)
    settings = Settings(listeners=(listener,), security=security or SecuritySettings())
    return Authentication(settings, SecurityImage, Timers(), Random(1).randbytes)


def offered(made: Authentication, listener: str) -> list[str]:
    """Return the mechanisms that a client of a listener gets."""
    client = made.authenticator(Listener(listener, protocol="SASL_SSL"))
    body = encoder(SaslHandshakeRequest, 1)(SaslHandshakeRequest(mechanism="none"))
    outcome = finish(client.receive(frame_of(17, 1, 1, "c", body)))
    assert not isinstance(outcome, PassOn)
    return decode_exact(SaslHandshakeResponse, 1, outcome.content or b"", 4).mechanisms


def test_each_listener_has_its_own() -> None:
    made = authentication("PLAIN", "SCRAM-SHA-256")
    assert offered(made, "SASL") == ["PLAIN", "SCRAM-SHA-256"]
    assert offered(made, "ANOTHER") == ["SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert (made.is_needed, made.has_oauth) == (True, False)


def test_without_listeners_nothing_is_needed() -> None:
    made = Authentication(Settings(), SecurityImage, Timers(), Random(1).randbytes)
    assert (made.is_needed, made.has_oauth) == (False, False)


@pytest.mark.parametrize("mechanisms", [(), ("GSSAPI",), ("PLAIN", "plain")])
def test_mechanisms_that_do_not_exist(mechanisms: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="listener SASL"):
        authentication(*mechanisms)


def test_tokens_need_keys() -> None:
    with pytest.raises(ConfigError, match=r"security\.oauth_keys"):
        authentication("OAUTHBEARER")
    security = SecuritySettings(oauth_keys="keys.json")
    assert authentication("OAUTHBEARER", security=security).has_oauth


def test_tokens_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "joserfc"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(ConfigError, match=r"barnabas\[oauth\]"):
        authentication("OAUTHBEARER", security=SecuritySettings(oauth_keys="keys.json"))


def test_nothing_random_is_used_before_a_client_needs_it() -> None:
    """A simulation without logins draws what it drew before."""

    def never(_: int) -> bytes:
        raise AssertionError("a random number was drawn")

    listener = ListenerSettings(name="SASL", protocol="SASL_SSL", mechanisms=("PLAIN",))
    made = Authentication(Settings(listeners=(listener,)), SecurityImage, Timers(), never)
    assert offered(made, "SASL") == ["PLAIN"]
