"""A scrape target: its address, the labels for its samples, and its credentials.

A password in an address is removed from it and used for basic authentication: `Target.url`, which
is printed, sent and exported, never has one. Files with secrets are read again at every scrape,
since they may be replaced while the collector runs.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

DEFAULT_PORT = 9400
DEFAULT_PATH = "/metrics"


class EndpointError(ValueError):
    """An address that cannot be scraped; the text says how to write one."""


class AccessError(ValueError):
    """A secret or certificate cannot be read; the text names the file."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """The credentials and TLS settings for an exporter."""

    username: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    ca_file: str = ""
    """Certificates to trust. The default is those of the system."""
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""
    """The name that the server's certificate must have. The default is that of the address."""
    insecure: bool = False
    """Accept any certificate."""

    def header(self) -> str:
        """Return the Authorization header; "" if there is none. Raises `AccessError`."""
        if self.token or self.token_file:
            return f"Bearer {self.token or _secret(self.token_file)}"
        if self.username:
            password = self.password or (_secret(self.password_file) if self.password_file else "")
            pair = f"{self.username}:{password}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        return ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One exporter."""

    url: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels for all its samples; labels of the page take precedence."""
    access: Access = Access()

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return urlsplit(self.url).netloc

    @property
    def host(self) -> str:
        """The name or address of the machine."""
        return urlsplit(self.url).hostname or ""


def endpoint(
    text: str,
    *,
    scheme: str = "http",
    path: str = DEFAULT_PATH,
    labels: Mapping[str, str] | None = None,
) -> Target:
    """Complete an address: HOST, HOST:PORT and URLs without a path are accepted."""
    shown = _without_password(text)
    try:
        parts = urlsplit(text if "//" in text else f"{scheme}://{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise EndpointError(f"{shown!r} is not an address ({error}); {_ADVICE}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise EndpointError(f"{shown!r} is not an address; {_ADVICE}")
    if port is None and (parts.scheme == "http" or "//" not in text):
        port = DEFAULT_PORT
    name = f"[{host}]" if ":" in host else host
    own_path = parts.path if parts.path.strip("/") else path
    query = f"?{parts.query}" if parts.query else ""
    url = f"{parts.scheme}://{name}{'' if port is None else f':{port}'}{own_path}{query}"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise EndpointError(f"{shown!r} has characters that a URL cannot hold; write them as %XX")
    access = Access(username=unquote(parts.username or ""), password=unquote(parts.password or ""))
    return Target(url=url, labels=dict(labels or {}), access=access)


_ADVICE = "write http://HOST:9400/metrics"


def _without_password(text: str) -> str:
    before, at, after = text.rpartition("@")
    scheme, slashes, _ = before.rpartition("//")
    return f"{scheme}{slashes}...@{after}" if at else text


def _secret(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"cannot read {path} ({error}); check its name and rights") from error
