"""Reads thresholds from a YAML file, by the names in `thresholds`.

idle_util_pct: 5
price_per_kwh: 0.22
"""

import difflib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import yaml

from barnabas.telemetry.findings.thresholds import Thresholds


class SettingsError(Exception):
    """The file cannot be used; the text says what to change."""


def read(path: Path) -> Thresholds:
    """Read a file; other thresholds keep their defaults."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; name a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        cause = " ".join(str(error).split())
        raise SettingsError(f"{path} is not YAML ({cause}); write NAME: NUMBER lines") from error
    if content is None:
        return Thresholds()
    if not isinstance(content, dict):
        raise SettingsError(f"{path} holds no settings; write NAME: NUMBER lines")
    try:
        return thresholds(content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def thresholds(given: Mapping[object, object]) -> Thresholds:
    """Return the defaults with some numbers replaced; refuse unknown names and invalid values."""
    known = {each.name: each for each in fields(Thresholds)}
    values: dict[str, float] = {}
    for name, value in given.items():
        if name not in known:
            raise SettingsError(_unknown(str(name), list(known)))
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise SettingsError(f"{name} is {value!r}; write a number that is not negative")
        whole = isinstance(known[str(name)].default, int)
        if whole and value != int(value):
            raise SettingsError(f"{name} is {value!r}; write a whole number")
        values[str(name)] = int(value) if whole else float(value)
    return Thresholds(**values)  # type: ignore[arg-type]


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"there is no setting {name}; did you mean {close[0]}?"
    return f"there is no setting {name}; remove it, or choose from {', '.join(known)}"
