"""Reads scrape targets from a file in Prometheus' file_sd format, again whenever the file changes.

    - targets: [gpu-node-1:9400, gpu-node-2:9400]
      labels: {rack: r7, __scheme__: https, __metrics_path__: /metrics}

The format is JSON if the name ends in .json, otherwise YAML. Labels that begin with `__` are not
for samples: two of them set scheme and path, the others are ignored. If a file cannot be read, the
targets do not change, and the collector reports that once.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SCHEME_LABEL = "__scheme__"
PATH_LABEL = "__metrics_path__"
HIDDEN = "__"


class TargetsError(ValueError):
    """A list of targets cannot be used; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A target that was found, before its credentials are known."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    scheme: str = ""
    path: str = ""


def parse_targets(text: str, *, is_json: bool) -> list[Found]:
    """Read the content of a file; raises `TargetsError`."""
    try:
        groups = json.loads(text) if is_json else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        kind = "JSON" if is_json else "YAML"
        raise TargetsError(f"not {kind} ({' '.join(str(error).split())})") from error
    if groups is None:
        return []
    if not isinstance(groups, list):
        raise TargetsError("expected a list of groups, each with `targets` and `labels`")
    return [found for group in groups for found in _group(group)]


class FileTargets:
    """One such file."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        """Read the file; raise `TargetsError` if that fails."""
        self._path = path
        self._tell = tell
        self._stamp = self._look()
        self._found = self._read()

    def found(self) -> list[Found]:
        """Return the targets; the same list object while the file is the same."""
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._found = self._read()
                self._tell(f"{self._path} names {len(self._found):,} targets now")
        except TargetsError as error:
            if self._stamp is not None:
                self._tell(f"{error}; the targets stay as they were")
            self._stamp = self._stamp_or_none()
        return self._found

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError as error:
            raise TargetsError(f"{self._path}: {error.strerror}") from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _stamp_or_none(self) -> tuple[int, ...] | None:
        try:
            return self._look()
        except TargetsError:
            return None

    def _read(self) -> list[Found]:
        try:
            text = self._path.read_text(encoding="utf-8")
            return parse_targets(text, is_json=self._path.suffix == ".json")
        except OSError as error:
            raise TargetsError(f"{self._path}: {error.strerror}") from error
        except ValueError as error:  # TargetsError, or text that is not UTF-8
            raise TargetsError(f"{self._path}: {error}") from error


def _group(group: object) -> list[Found]:
    if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
        raise TargetsError(f"a group needs a list `targets`; there is {group!r:.60}")
    labels = _labels(group.get("labels") or {})
    shown = {name: text for name, text in labels.items() if not name.startswith(HIDDEN)}
    found = []
    for address in group["targets"]:
        if not isinstance(address, str):
            raise TargetsError(f"target {address!r:.60} is not text; write HOST:PORT")
        how = {"scheme": labels.get(SCHEME_LABEL, ""), "path": labels.get(PATH_LABEL, "")}
        found.append(Found(address=address, labels=shown, **how))
    return found


def _labels(labels: object) -> dict[str, str]:
    if not isinstance(labels, dict):
        raise TargetsError(f"`labels` must be a mapping, not {labels!r:.60}")
    for name, value in labels.items():
        if not isinstance(name, str) or not LABEL_NAME.fullmatch(name):
            raise TargetsError(f"{name!r:.60} is not a label name")
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise TargetsError(f"label {name} must be text, not {value!r:.60}")
    return {name: str(value) for name, value in labels.items()}
