"""The settings of listeners, authentication, authorization and audit; see `settings.py`."""

from dataclasses import dataclass
from typing import Literal

KIB = 1024
SECOND_MS = 1000
HOUR_MS = 3600 * SECOND_MS
DAY_MS = 24 * HOUR_MS

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
ClientAuthentication = Literal["none", "requested", "required"]


Secret = tuple[Literal["file", "variable"], str]
"""Where a password is: in a file, or in an environment variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The files of one end of TLS."""

    certificate: str
    key: str
    password: Secret | None = None
    authorities: str | None = None
    client_authentication: ClientAuthentication = "none"
    label: str = ""
    """What they belong to, for messages."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, for the check whether they changed."""
        found = [self.certificate, self.key]
        if self.authorities is not None:
            found.append(self.authorities)
        if self.password is not None and self.password[0] == "file":
            found.append(self.password[1])
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """One address on which the broker accepts clients, and how they connect."""

    name: str
    """The name of the listener, such as INTERNAL. Brokers of a cluster use the same names."""

    host: str = "127.0.0.1"
    """The address to listen on."""

    port: int = 0
    """The port to listen on; 0 takes any free port."""

    protocol: SecurityProtocol = "PLAINTEXT"
    """PLAINTEXT: neither encryption nor authentication. SSL: TLS. SASL_PLAINTEXT: SASL without
    encryption. SASL_SSL: SASL over TLS."""

    advertised_host: str | None = None
    """The host that clients connect to, if it differs from `host`."""

    advertised_port: int | None = None
    """The port that clients connect to, if it differs from `port`."""

    certificate: str | None = None
    """A PEM file with the broker's certificate, and those between it and the authority."""

    key: str | None = None
    """A PEM file with the private key of the certificate."""

    key_password_file: str | None = None
    """A file with the password of the private key."""

    key_password_variable: str | None = None
    """The environment variable with the password of the private key."""

    authorities: str | None = None
    """A PEM file with the authorities whose client certificates are accepted."""

    client_authentication: ClientAuthentication = "none"
    """Whether clients of a TLS listener must have a certificate: none, requested or required."""

    principal_mapping_rules: tuple[str, ...] = ("DEFAULT",)
    """How the name in a client certificate becomes a principal: Kafka's rules, tried in order."""

    mechanisms: tuple[str, ...] = ("SCRAM-SHA-512", "SCRAM-SHA-256")
    """The SASL mechanisms of a SASL listener."""

    max_connections: int = 0
    """Connections to this listener beyond this number are refused; 0 means no limit."""

    @property
    def has_tls(self) -> bool:
        """Whether its connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether its clients authenticate with SASL."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def tls_files(self) -> TlsFiles:
        """The files of a listener with TLS."""
        assert self.certificate is not None, "the configuration requires it"
        return TlsFiles(
            certificate=self.certificate,
            key=self.key or self.certificate,
            password=_secret(self.key_password_file, self.key_password_variable),
            authorities=self.authorities,
            client_authentication=self.client_authentication,
            label=f"listener {self.name}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """Which clients may connect, and what they may do."""

    authorizer: Literal["none", "acl"] = "none"
    """none: every client may do everything. acl: a client may do what an ACL allows it to do."""

    super_users: tuple[str, ...] = ()
    """Principals that may do everything, such as User:admin."""

    allow_everyone_if_no_acl: bool = False
    """Whether a resource that no ACL names is open to every client."""

    reauthentication_ms: int = 0
    """Clients must authenticate again after this time (KIP-368); 0 means never."""

    sasl_receive_bytes_max: int = 512 * KIB
    """The largest request of a client that has not authenticated yet."""

    failed_authentication_delay_ms: int = 100
    """How long the response to a failed authentication waits."""

    handshake_timeout_ms: int = 10 * SECOND_MS
    """How long a client may take to complete the TLS handshake, and then to authenticate."""

    certificate_check_ms: int = 10 * SECOND_MS
    """How often the broker looks for changed certificate files; 0 means only on SIGHUP."""

    oauth_keys: str | None = None
    """The keys that sign OAUTHBEARER tokens: a file with a JSON Web Key Set, or its https URL."""

    oauth_issuer: str | None = None
    """The issuer that tokens must name."""

    oauth_audience: str | None = None
    """The audience that tokens must name."""

    oauth_principal_claim: str = "sub"
    """The claim of a token that holds the name of the user."""

    oauth_clock_skew_ms: int = 30 * SECOND_MS
    """By how much the clocks of the broker and the issuer may differ."""

    delegation_token_secret_file: str | None = None
    """A file with the secret that delegation tokens are derived from, the same on all brokers.
    Without a secret there are no delegation tokens."""

    delegation_token_secret_variable: str | None = None
    """The environment variable with that secret, instead of a file."""

    delegation_token_max_lifetime_ms: int = 7 * DAY_MS
    """How long a delegation token can be used at most, however often it is renewed."""

    delegation_token_expiry_ms: int = DAY_MS
    """How long a delegation token can be used before it must be renewed."""

    delegation_token_expiry_check_ms: int = HOUR_MS
    """How often expired delegation tokens are removed."""

    audit_file: str | None = None
    """A file to which denials and changes of security metadata are written as lines of JSON."""
    audit_topic: str | None = None
    """A topic to which the same lines are written. It needs the authorizer `acl`."""

    @property
    def delegation_token_secret(self) -> Secret | None:
        """Where the secret of delegation tokens is."""
        return _secret(self.delegation_token_secret_file, self.delegation_token_secret_variable)


def _secret(file: str | None, variable: str | None) -> Secret | None:
    if file is not None:
        return "file", file
    return None if variable is None else ("variable", variable)
