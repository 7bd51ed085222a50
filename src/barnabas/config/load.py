"""Merge settings from all sources, in rising priority: defaults, file, environment, flags.

`load` reports all problems at once, each with its place, the key, the value and what to write. A
value that a later source overrides must also be valid; otherwise the error would appear only when
the later source is removed. An unknown variable that starts with BARNABAS_ is an error, because it
is probably misspelled.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.config import cluster_settings as cluster
from barnabas.config import listener_settings as listeners
from barnabas.config import topic_settings as topics
from barnabas.config.audit_settings import audit_problems
from barnabas.config.keys import BY_PATH, BY_VARIABLE, LISTENERS, SECTIONS, TOPICS, Entry, Raw
from barnabas.config.units import format_size
from barnabas.model.errors import ConfigError
from barnabas.model.security_settings import ListenerSettings
from barnabas.model.settings import Settings, TopicSettings

PREFIX = "BARNABAS_"
NESTED = (TOPICS, LISTENERS)
ADDRESS_KEYS = ("broker.host", "broker.port")
"""The keys with the address of the only listener, without the section `listeners`."""


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]
) -> Settings:
    """Return the settings, or raise ConfigError with all problems.

    Flags are named by section and key, as in `storage.segment_size`; None means not given.
    """
    problems: list[str] = []
    entries = [*_from_file(file), *_from_environment(environment, problems), *_from_flags(flags)]
    sections = _sections([e for e in entries if e.path[0] not in NESTED], problems)
    made = _topics([e for e in entries if e.path[0] == TOPICS], problems)
    named = _listeners([e for e in entries if e.path[0] == LISTENERS], problems)
    if named:
        problems += _addresses_twice(flags, named)
    if file is not None:
        problems += _only_in_flags(entries)
    _raise_all(problems)
    settings = dataclasses.replace(_build(sections, made), listeners=named)
    _check_together(settings, problems)
    _raise_all(problems)
    return settings


def _from_file(file: Path | None) -> list[Entry]:
    if file is None:
        return []
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = "`barnabas serve --print-config` writes one to start from"
        raise ConfigError(f"{file}: there is no such file; {remedy}.") from None
    except OSError as error:
        raise ConfigError(f"{file}: it cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: byte {error.start} is not UTF-8; save it as such.") from None
    from barnabas.config import document  # noqa: PLC0415 - yaml is slow to import, most have no file

    return document.read(text, str(file))


def _from_environment(environment: Mapping[str, str], problems: list[str]) -> list[Entry]:
    entries = []
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        key = BY_VARIABLE.get(variable)
        if key is None:
            hint = _hint_variable(variable)
            problems.append(f"environment: the variable {variable} sets nothing; {hint}")
            continue
        origin = f"environment variable {variable}"
        entries.append(Entry((key.section, key.name), environment[variable], origin))
    return entries


def _from_flags(flags: Mapping[str, object]) -> list[Entry]:
    return [
        Entry(_path_of(name), _as_raw(value), f"flag {name}")
        for name, value in flags.items()
        if value is not None
    ]


def _path_of(name: str) -> tuple[str, ...]:
    return tuple(name.split(".", 2 if name.startswith(LISTENERS + ".") else 1))


def _as_raw(value: object) -> Raw:
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return str(value)


def _sections(entries: Iterable[Entry], problems: list[str]) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    unknown: set[str] = set()
    for entry in entries:
        if entry.path[0] in unknown:
            continue  # one error for an unknown section is enough
        try:
            _take(entry, sections)
        except ValueError as error:
            problems.append(f"{entry.origin}: {error}")
            unknown |= {entry.path[0]} - sections.keys()
    return sections


def _take(entry: Entry, sections: dict[str, dict[str, Any]]) -> None:
    section = entry.path[0]
    if section not in sections:
        names = (*SECTIONS, *NESTED)
        hint = _hint(section, names, f"write one of {', '.join(names)}")
        raise ValueError(f"there is no section {section!r}; {hint}")
    if len(entry.path) == 1:
        if entry.raw is not None:
            raise ValueError(f"{section} is {_shown(entry.raw)}; write its keys below it")
        return
    name = entry.path[1]
    key = BY_PATH.get((section, name))
    if key is None:
        known = [key.name for key in BY_PATH.values() if key.section == section]
        hint = _hint(name, known, f"the keys of {section} are {', '.join(known)}")
        raise ValueError(f"there is no key {section}.{name}; {hint}")
    try:
        sections[section][key.field] = key.read(entry.raw)
    except ValueError as error:
        raise ValueError(f"{key.path} is {_shown(entry.raw)}; {error}") from None


def _topics(entries: list[Entry], problems: list[str]) -> tuple[TopicSettings, ...]:
    drafts: dict[str, topics.TopicDraft] = {}
    origins: dict[str, str] = {}
    for entry in entries:
        try:
            _take_topic(entry, drafts)
        except ValueError as error:
            problems.append(f"{entry.origin}: {error}")
        if len(entry.path) == 2:
            origins[entry.path[1]] = entry.origin
    made = []
    for name, draft in drafts.items():
        try:
            made.append(draft.finish())
        except ValueError as error:
            problems.append(f"{origins[name]}: {TOPICS}.{name}: {error}")
    return tuple(made)


def _take_topic(entry: Entry, drafts: dict[str, topics.TopicDraft]) -> None:
    path = ".".join(entry.path)
    if len(entry.path) < 3:
        if entry.raw is not None:
            raise ValueError(f"{path} is {_shown(entry.raw)}; write its keys below it")
        for name in entry.path[1:]:
            drafts[name] = topics.begin(name)
        return
    _, name, key = entry.path
    if name not in drafts:
        return  # its name was already reported
    if key not in topics.KNOWN:
        hint = _hint(key, topics.KNOWN, "write a key such as retention_time, or a Kafka config")
        raise ValueError(f"there is no key {key!r} for a topic; {hint}")
    try:
        drafts[name].take(key, entry.raw)
    except ValueError as error:
        raise ValueError(f"{path} is {_shown(entry.raw)}; {error}") from None


def _listeners(entries: list[Entry], problems: list[str]) -> tuple[ListenerSettings, ...]:
    drafts: dict[str, listeners.ListenerDraft] = {}
    wrong: set[str] = set()
    for entry in entries:
        try:
            _take_listener(entry, drafts, wrong)
        except ValueError as error:
            problems.append(f"{entry.origin}: {error}")
            wrong.update(entry.path[1:2])
    made = []
    for name, draft in drafts.items():
        if name not in wrong:
            listener, found = draft.finish()
            made.append(listener)
            problems += found
    problems += listeners.problems_together(made)
    return tuple(made)


def _take_listener(
    entry: Entry, drafts: dict[str, listeners.ListenerDraft], wrong: set[str]
) -> None:
    path = ".".join(entry.path)
    if len(entry.path) < 3 and entry.raw is not None:
        raise ValueError(f"{path} is {_shown(entry.raw)}; write its keys below it")
    if len(entry.path) == 1:
        return
    name = entry.path[1]
    if name not in drafts:
        if name in wrong:
            return  # its name was already reported
        drafts[name] = listeners.begin(name, entry.origin)
    if len(entry.path) == 2:
        return
    key = entry.path[2]
    if key not in listeners.KEYS:
        known = ", ".join(listeners.KEYS)
        hint = _hint(key, listeners.KEYS, f"the keys of a listener are {known}")
        raise ValueError(f"there is no key {key!r} for a listener; {hint}")
    try:
        drafts[name].take(key, entry.raw, entry.origin)
    except ValueError as error:
        raise ValueError(f"{path} is {_shown(entry.raw)}; {error}") from None


def _addresses_twice(
    flags: Mapping[str, object], named: Iterable[ListenerSettings]
) -> Iterable[str]:
    """Refuse an address that belongs to no listener: the section has all of them."""
    if any(flags.get(key) is not None for key in ADDRESS_KEYS):
        names = [each.name for each in named]
        yield (
            f"flag --listen: it names none of the listeners {', '.join(names)}; write "
            f"--listen {names[0]}=HOST:PORT, or remove the section {LISTENERS}"
        )


def _only_in_flags(entries: Iterable[Entry]) -> Iterable[str]:
    """Refuse a listener that the file does not have: a misspelled one would have no TLS."""
    named = [entry for entry in entries if entry.path[0] == LISTENERS and len(entry.path) == 3]
    known = dict.fromkeys(each.path[1] for each in named if not _is_flag(each))
    for entry in named:
        if _is_flag(entry) and entry.path[1] not in known:
            shown = ", ".join(known) or "none"
            yield f"{entry.origin}: the file has no listener {entry.path[1]!r}; it has {shown}"


def _is_flag(entry: Entry) -> bool:
    return entry.origin.startswith("flag ")


def _build(sections: Mapping[str, Mapping[str, Any]], made: tuple[TopicSettings, ...]) -> Settings:
    base = Settings(topics=made)
    changed = {
        section: dataclasses.replace(getattr(base, section), **fields)
        for section, fields in sections.items()
    }
    return dataclasses.replace(base, **changed)


def _check_together(settings: Settings, problems: list[str]) -> None:
    largest, request = (
        settings.performance.max_message_bytes,
        settings.performance.max_request_bytes,
    )
    if largest > request:
        problems.append(
            f"performance.max_message_size ({format_size(largest)}) does not fit into "
            f"performance.max_request_size ({format_size(request)}); raise the second"
        )
    security = settings.security
    if security.delegation_token_secret_file and security.delegation_token_secret_variable:
        problems.append(
            "security.delegation_token_secret_file and delegation_token_secret_variable are both "
            "set; remove one of the two"
        )
    problems += cluster.problems(settings)
    problems += listeners.peer_problems(settings)
    problems += audit_problems(settings)


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _hint_variable(variable: str) -> str:
    # Without the prefix, which would make any two names similar.
    known = {name.removeprefix(PREFIX): name for name in BY_VARIABLE}
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), known, n=1)
    return f"did you mean {known[near[0]]}?" if near else "unset it"


def _shown(raw: Raw) -> str:
    if raw is None or raw == "":
        return "empty"
    return repr(raw) if isinstance(raw, str) else repr(list(raw))


def _raise_all(problems: list[str]) -> None:
    if problems:
        ended = (text if text.endswith("?") else text + "." for text in problems)
        raise ConfigError("\n".join(ended))
