"""What a console is told when it starts: its cluster, its address, and who may do what."""

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from barnabas.admin.admin_errors import AdminError
from barnabas.monitor.stream_progress import TOPIC as STREAMS_TOPIC

INTERVAL_S = 10.0


class LoginMethod(StrEnum):
    """How users prove who they are."""

    NONE = "none"
    PASSWORD = "password"  # noqa: S105 - the name of a method
    BROKER = "broker"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """The issuer that users log in at, and how it knows the console."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None for a public client, which PKCE alone protects."""
    user_claim: str = "preferred_username"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """The settings of one console."""

    bootstrap: str
    properties: tuple[str, ...] = field(default=(), repr=False)
    """librdkafka's properties as KEY=VALUE, for the console's own connections."""
    host: str = "127.0.0.1"
    port: int = 8080
    name: str = ""
    """What the page calls the cluster."""
    login: LoginMethod = LoginMethod.NONE
    passwords: Path | None = None
    oidc: OidcSettings | None = None
    read_only: bool = True
    base_path: str = ""
    """The path of the page behind a proxy: empty, or `/kafka` without a slash at the end."""
    public_url: str | None = None
    """Where users find the page, if it is not the address that the console listens on."""
    metrics: tuple[str, ...] = ()
    """Addresses where brokers serve /metrics."""
    interval_s: float = INTERVAL_S
    lake: Path | None = None
    streams_topic: str = STREAMS_TOPIC
    alertmanager: str | None = None
    audit: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this computer can reach the console."""
        return is_loopback(self.host)

    @property
    def is_https(self) -> bool:
        """Whether users come by https, so that cookies may demand it."""
        return self.public_url is not None and self.public_url.startswith("https://")

    def require_safe(self) -> None:
        """Raise if strangers could read records, or change the cluster, without a login."""
        if self.is_local or self.login is not LoginMethod.NONE:
            return
        if not self.read_only:
            raise AdminError(
                f"--read-write on {self.host} without a login would let every computer on the "
                "network change the cluster; add --login password, --login broker or --login oidc"
            )


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is one of this computer alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def clean_base_path(text: str) -> str:
    """Return a base path with a slash in front and none at the end; raise for other characters."""
    path = "/" + text.strip("/") if text.strip("/") else ""
    parts = path.split("/")[1:]
    allowed = set("-._~")
    if any(
        not part
        or part in (".", "..")
        or not all(c.isascii() and (c.isalnum() or c in allowed) for c in part)
        for part in parts
    ):
        raise AdminError(f"--base-path {text!r} is not a path such as /kafka")
    return path


def public_parts(url: str) -> tuple[str, str]:
    """Return host and path of a public URL; raise unless it is http or https."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise AdminError(f"--public-url {url!r} is not a URL such as https://tools.example/kafka")
    return parts.netloc.lower(), parts.path.rstrip("/")
