"""Reads the collector's YAML settings: where targets come from, and how to authenticate to them.

    files: [targets.yml]              # like --targets
    kubernetes:                       # like --kubernetes
      selector: app=nvidia-dcgm-exporter
      namespace: gpu-operator
    scrape:                           # the first entry that names a target is for it
      - targets: ["*.lab:9443"]
        scheme: https
        authorization: {credentials_file: token}
        tls_config: {ca_file: lab.pem, cert_file: me.pem, key_file: me.key}

Names are those of Prometheus' scrape_config. Paths are relative to the settings file.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from barnabas.telemetry.collect.kubernetes import REFRESH_S, PodSettings
from barnabas.telemetry.collect.targets import Access

TOP = ("files", "kubernetes", "scrape")
PODS = (
    "selector",
    "namespace",
    "port",
    "scheme",
    "path",
    "api",
    "token_file",
    "ca_file",
    "refresh",
)
RULE = ("targets", "scheme", "metrics_path", "basic_auth", "authorization", "tls_config")
BASIC = ("username", "password", "password_file")
BEARER = ("type", "credentials", "credentials_file")
TLS = ("ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify")


class ScrapeSettingsError(Exception):
    """The file cannot be used; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The settings for targets that match one of its patterns."""

    patterns: tuple[str, ...]
    scheme: str = ""
    path: str = ""
    access: Access = field(default_factory=Access)

    def matches(self, host: str, address: str) -> bool:
        """Compare with HOST and HOST:PORT; `*` stands for anything."""
        return any(fnmatchcase(host, p) or fnmatchcase(address, p) for p in self.patterns)


@dataclass(frozen=True, kw_only=True)
class ScrapeSettings:
    """The content of the file."""

    files: tuple[Path, ...] = ()
    pods: PodSettings | None = None
    rules: tuple[Rule, ...] = field(default=())


def read(path: Path) -> ScrapeSettings:
    """Read a file; raises `ScrapeSettingsError`."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScrapeSettingsError(f"{path}: {error.strerror}; name a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScrapeSettingsError(f"{path} is not YAML ({' '.join(str(error).split())})") from error
    try:
        return parse(content or {}, path.parent)
    except ScrapeSettingsError as error:
        raise ScrapeSettingsError(f"{path}: {error}") from error


def parse(content: object, folder: Path) -> ScrapeSettings:
    """Convert the YAML to settings."""
    top = _mapping(content, "the file", TOP)
    pods = top.get("kubernetes")
    return ScrapeSettings(
        files=tuple(folder / name for name in _texts(top.get("files") or [], "files")),
        pods=None if pods is None else _pods(_mapping(pods, "kubernetes", PODS), folder),
        rules=tuple(_rule(each, folder) for each in _list(top.get("scrape") or [], "scrape")),
    )


def _pods(given: Mapping[str, Any], folder: Path) -> PodSettings:
    values: dict[str, Any] = {
        name: _text(given[name], f"kubernetes.{name}")
        for name in ("selector", "namespace", "scheme", "path", "api")
        if name in given
    }
    if "selector" not in values:
        raise ScrapeSettingsError("kubernetes needs a selector, such as app=nvidia-dcgm-exporter")
    for name in ("token_file", "ca_file"):
        if name in given:
            values[name] = str(folder / _text(given[name], f"kubernetes.{name}"))
    port, refresh = given.get("port", 0), given.get("refresh", REFRESH_S)
    if not isinstance(port, int) or not 0 <= port < 65_536:
        raise ScrapeSettingsError(f"kubernetes.port is {port!r}; write a number below 65536")
    if isinstance(refresh, bool) or not isinstance(refresh, int | float) or refresh <= 0:
        raise ScrapeSettingsError(f"kubernetes.refresh is {refresh!r}; write seconds")
    return PodSettings(**values, port=port, refresh_s=float(refresh))


def _rule(given: object, folder: Path) -> Rule:
    rule = _mapping(given, "scrape", RULE)
    patterns = tuple(_texts(rule.get("targets") or [], "scrape.targets"))
    if not patterns:
        raise ScrapeSettingsError('an entry of scrape names no targets; write targets: ["*"]')
    scheme = _text(rule.get("scheme", ""), "scheme")
    if scheme not in {"", "http", "https"}:
        raise ScrapeSettingsError(f"scheme is {scheme!r}; write http or https")
    path = _text(rule.get("metrics_path", ""), "metrics_path")
    return Rule(patterns=patterns, scheme=scheme, path=path, access=_access(rule, folder))


def _access(rule: Mapping[str, Any], folder: Path) -> Access:
    basic = _mapping(rule.get("basic_auth") or {}, "basic_auth", BASIC)
    bearer = _mapping(rule.get("authorization") or {}, "authorization", BEARER)
    tls = _mapping(rule.get("tls_config") or {}, "tls_config", TLS)
    if basic and bearer:
        raise ScrapeSettingsError("basic_auth and authorization exclude each other; keep one")
    if basic and not basic.get("username"):
        raise ScrapeSettingsError("basic_auth needs a username")
    if str(bearer.get("type", "Bearer")).lower() != "bearer":
        raise ScrapeSettingsError("authorization.type can only be Bearer; use basic_auth for Basic")
    insecure = tls.get("insecure_skip_verify", False)
    if not isinstance(insecure, bool):
        raise ScrapeSettingsError(f"insecure_skip_verify is {insecure!r}; write true or false")

    def file(given: Mapping[str, Any], name: str) -> str:
        text = _text(given.get(name, ""), name)
        return str(folder / text) if text else ""

    return Access(
        username=_text(basic.get("username", ""), "username"),
        password=_text(basic.get("password", ""), "password"),
        password_file=file(basic, "password_file"),
        token=_text(bearer.get("credentials", ""), "credentials"),
        token_file=file(bearer, "credentials_file"),
        ca_file=file(tls, "ca_file"),
        cert_file=file(tls, "cert_file"),
        key_file=file(tls, "key_file"),
        server_name=_text(tls.get("server_name", ""), "server_name"),
        insecure=insecure,
    )


def _mapping(value: object, what: str, allowed: Iterable[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScrapeSettingsError(f"{what} must be a mapping, not {type(value).__name__}")
    known = list(allowed)
    for name in value:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            advice = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
            raise ScrapeSettingsError(f"{what} knows no {name}; {advice}")
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ScrapeSettingsError(f"{what} must be a list, not {type(value).__name__}")
    return value


def _texts(value: object, what: str) -> list[str]:
    return [_text(each, what) for each in _list(value, what)]


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        # The value is not repeated: it may be a secret.
        raise ScrapeSettingsError(f"{what} must be text, not {type(value).__name__}; quote it")
    return value
