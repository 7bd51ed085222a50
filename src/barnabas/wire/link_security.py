"""TLS and authentication of our own connections, from librdkafka's properties.

The names are those of librdkafka, so that one file of properties is right for all commands:
`security.protocol`, `sasl.mechanism`, `sasl.username`, `sasl.password`, `ssl.ca.location` and so
on. `oauth_cb` (as in confluent-kafka) or `sasl.oauthbearer.token` gives a token.
"""

import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.wire.login import MECHANISMS, OAUTHBEARER, Login
from barnabas.wire.wire_failures import LinkError, UnsupportedPropertyError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TOKEN = "sasl.oauthbearer.token"  # noqa: S105 - the name of a property
TOKEN_LOGIN = "sasl.tokenauth"  # noqa: S105 - the name of a property
"""Whether user and password are the id and the HMAC of a delegation token; librdkafka has no such
property."""
UNSUPPORTED = ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem", "ssl.engine.location")
"""Properties of librdkafka that change the client's identity, and that a link does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSecurity:
    """How a link is encrypted, and how its client authenticates."""

    context: ssl.SSLContext | None = field(default=None, repr=False)
    """None if the connection is not encrypted."""
    login: Login | None = None

    def secure(self, connected: socket.socket, host: str, address: str) -> socket.socket:
        """Return the socket for Kafka's protocol, encrypted if the settings say so."""
        if self.context is None:
            return connected
        try:
            return self.context.wrap_socket(connected, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise LinkError(
                f"The certificate of {address} is not accepted: {error.verify_message}; set "
                "ssl.ca.location to the authority that signed it, and use the name it is for"
            ) from None
        except ssl.SSLError as error:
            raise LinkError(
                f"{address} does not speak TLS as this client does ({error.reason}); check "
                "security.protocol, the port, and the client's certificate"
            ) from None
        except (ConnectionError, TimeoutError):
            raise LinkError(
                f"{address} did not complete the TLS handshake; check security.protocol and the "
                "port"
            ) from None


def link_security(properties: Mapping[str, object]) -> LinkSecurity | None:
    """Return the security that properties ask for; None for none."""
    protocol = _text(properties, "security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise LinkError(f"security.protocol is {protocol!r}; write one of {', '.join(PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return None
    context = _context(properties) if protocol.endswith("SSL") else None
    login = _login(properties) if protocol.startswith("SASL") else None
    return LinkSecurity(context=context, login=login)


def _text(properties: Mapping[str, object], name: str, default: str = "") -> str:
    value = properties.get(name)
    return default if value is None else str(value)


def _context(properties: Mapping[str, object]) -> ssl.SSLContext:
    for name in UNSUPPORTED:
        if name in properties:
            raise UnsupportedPropertyError(
                f"{name} is not supported by this command; use ssl.certificate.location and "
                "ssl.key.location"
            )
    authorities = _text(properties, "ssl.ca.location")
    pem = _text(properties, "ssl.ca.pem")
    try:
        context = ssl.create_default_context(
            cafile=authorities if authorities and not Path(authorities).is_dir() else None,
            capath=authorities if authorities and Path(authorities).is_dir() else None,
            cadata=pem or None,
        )
    except (OSError, ssl.SSLError, ValueError) as error:
        raise LinkError(f"ssl.ca.location {authorities}: no certificates: {error}") from None
    _load_certificate(context, properties)
    checks = _text(properties, "enable.ssl.certificate.verification", "true").lower()
    names = _text(properties, "ssl.endpoint.identification.algorithm", "https").lower()
    if checks == "false" or names in ("none", ""):
        context.check_hostname = False
    if checks == "false":
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_certificate(context: ssl.SSLContext, properties: Mapping[str, object]) -> None:
    """Load the client's certificate, if it has one."""
    certificate = _text(properties, "ssl.certificate.location")
    key = _text(properties, "ssl.key.location")
    password = _text(properties, "ssl.key.password")
    if not certificate:
        return
    try:
        # Without a password OpenSSL would ask for it at the terminal.
        context.load_cert_chain(certificate, key or None, lambda: password)
    except (OSError, ssl.SSLError) as error:
        raise LinkError(
            f"ssl.certificate.location {certificate}: the certificate or its key cannot be used "
            f"({type(error).__name__}); check ssl.key.location and ssl.key.password"
        ) from None


def _login(properties: Mapping[str, object]) -> Login:
    mechanism = _text(properties, "sasl.mechanism") or _text(properties, "sasl.mechanisms")
    mechanism = mechanism.upper()
    if mechanism not in MECHANISMS:
        raise UnsupportedPropertyError(
            f"sasl.mechanism is {mechanism!r}; write one of {', '.join(MECHANISMS)}"
        )
    if mechanism == OAUTHBEARER:
        return Login(mechanism=mechanism, token=_token(properties))
    user, password = _text(properties, "sasl.username"), _text(properties, "sasl.password")
    if not user or not password:
        raise LinkError(f"{mechanism} needs sasl.username and sasl.password")
    has_token = _text(properties, TOKEN_LOGIN, "false").lower() == "true"
    return Login(mechanism=mechanism, user=user, password=password, has_token=has_token)


def _token(properties: Mapping[str, object]) -> Callable[[], str]:
    fixed, callback = _text(properties, TOKEN), properties.get("oauth_cb")
    if fixed:
        return lambda: fixed
    if callable(callback):
        return lambda: str(callback("")[0])
    raise UnsupportedPropertyError(f"OAUTHBEARER needs {TOKEN}")
