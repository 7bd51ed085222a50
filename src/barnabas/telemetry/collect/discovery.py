"""Combines the scrape targets of the command line, of target files and of Kubernetes.

Each source returns the same list object while nothing has changed. An unusable address is reported,
and the others are scraped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from barnabas.telemetry.collect.file_targets import FileTargets, Found
from barnabas.telemetry.collect.kubernetes import (
    PodSettings,
    PodTargets,
    api_address,
    own_namespace,
)
from barnabas.telemetry.collect.scrape_settings import Rule, ScrapeSettings
from barnabas.telemetry.collect.targets import (
    DEFAULT_PATH,
    EndpointError,
    Target,
    endpoint,
)


class Source(Protocol):
    """A source of targets."""

    def found(self) -> list[Found]:
        """Return the targets; the same list object if nothing has changed."""
        ...


class NamedTargets:
    """The targets of the command line."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """Take addresses."""
        self._found = [Found(address=address) for address in addresses]

    def found(self) -> list[Found]:
        """Return the targets."""
        return self._found


class Discovery:
    """All sources, and the rules that give credentials to targets."""

    def __init__(
        self, sources: Sequence[Source], rules: Sequence[Rule], tell: Callable[[str], None]
    ) -> None:
        """Take the sources in order: if two name the same URL, the first is used."""
        self._sources = sources
        self._rules = rules
        self._tell = tell
        self._seen: list[list[Found]] = []
        self._targets: list[Target] = []

    def targets(self) -> Sequence[Target]:
        """Return the present targets."""
        seen = [source.found() for source in self._sources]
        if len(seen) == len(self._seen) and all(map(_is_same, seen, self._seen)):
            return self._targets
        self._seen = seen
        by_url: dict[str, Target] = {}
        for found in (each for some in seen for each in some):
            try:
                target = resolve(found, self._rules)
            except EndpointError as error:
                self._tell(f"{error}; it is left out")
            else:
                by_url.setdefault(target.url, target)
        self._targets = list(by_url.values())
        if not self._targets:
            self._tell("There are no targets at present")
        return self._targets


def discovery(
    addresses: Sequence[str],
    files: Sequence[Path],
    settings: ScrapeSettings,
    *,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
    is_stopping: Callable[[], bool],
) -> Discovery:
    """Open all sources; raise if one of the command line or a file cannot be used."""
    for address in addresses:
        resolve(Found(address=address), settings.rules)
    sources: list[Source] = [NamedTargets(addresses)]
    sources += [FileTargets(path, tell) for path in (*files, *settings.files)]
    if settings.pods is not None:
        pods = _completed(settings.pods, environment)
        sources.append(PodTargets(pods, tell, is_stopping))
    return Discovery(sources, settings.rules, tell)


def resolve(found: Found, rules: Sequence[Rule]) -> Target:
    """Complete an address by the first matching rule; parts of the address take precedence."""
    plain = endpoint(found.address)
    rule = next((each for each in rules if each.matches(plain.host, plain.address)), None)
    target = endpoint(
        found.address,
        scheme=found.scheme or (rule.scheme if rule else "") or "http",
        path=found.path or (rule.path if rule else "") or DEFAULT_PATH,
        labels=found.labels,
    )
    if rule is None:
        return target
    own, access = target.access, rule.access
    if own.username:  # a password in the address overrides the settings
        access = replace(
            access,
            username=own.username,
            password=own.password,
            password_file="",
            token="",
            token_file="",
        )
    return replace(target, access=access)


def _completed(pods: PodSettings, environment: Mapping[str, str]) -> PodSettings:
    namespace = pods.namespace or own_namespace()
    return replace(pods, namespace=namespace, api=pods.api or api_address(environment))


def _is_same(left: list[Found], right: list[Found]) -> bool:
    return left is right
