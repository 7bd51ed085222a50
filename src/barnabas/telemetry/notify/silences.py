"""Silences: alerts that are not sent for some time, with the name of the creator.

A silence has patterns for some of finding, host, gpu and namespace (`*` and `?` as in file names).
An alert is silenced while one silence is active whose patterns all match. An alert about several
cards is silenced if the pattern for `gpu` matches all of them: other cards are still announced.

Silences only affect sending: table and topic have every alert.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase

from barnabas.telemetry.notify.notice import Notice

COLUMNS = {"finding": "finding", "host": "hostname", "namespace": "namespace"}
"""The column of an alert that a pattern is for; `gpu` is for all cards of the alert."""
NAMES = ("finding", "host", "gpu", "namespace")


class SilenceError(ValueError):
    """An invalid silence; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class Silence:
    """One silence. Times are milliseconds since 1970."""

    silence_id: str
    matchers: Mapping[str, str] = field(default_factory=dict)
    start_ms: int
    end_ms: int
    author: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse a silence that would match no alert, or every alert."""
        strange = [name for name in self.matchers if name not in NAMES]
        if strange:
            raise SilenceError(f"{strange[0]} cannot be matched; choose from {', '.join(NAMES)}")
        if not self.matchers:
            raise SilenceError(f"a silence needs a pattern for one of {', '.join(NAMES)}")
        if self.start_ms >= self.end_ms:
            raise SilenceError("a silence must start before it ends")

    def is_active(self, now_ms: int) -> bool:
        """Return whether the silence is active at a time."""
        return self.start_ms <= now_ms < self.end_ms

    def matches(self, notice: Notice) -> bool:
        """Return whether the silence matches an alert."""
        return all(self._matches(notice, *each) for each in self.matchers.items())

    def _matches(self, notice: Notice, name: str, pattern: str) -> bool:
        if name == "gpu":
            return all(fnmatchcase(gpu, pattern) for gpu in notice.gpus)
        return fnmatchcase(notice.text(COLUMNS[name]), pattern)

    def to_json(self) -> bytes:
        """Return the silence as a record."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def silence_from(value: bytes) -> Silence:
    """Read a record; raise `SilenceError` if it is not a silence."""
    try:
        found = json.loads(value)
        return Silence(
            silence_id=str(found["silence_id"]),
            matchers={str(name): str(text) for name, text in found["matchers"].items()},
            start_ms=int(found["start_ms"]),
            end_ms=int(found["end_ms"]),
            author=str(found["author"]),
            reason=str(found["reason"]),
        )
    except SilenceError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SilenceError(f"not a silence: {error!r}") from error


def silencing(silences: Iterable[Silence], notice: Notice, now_ms: int) -> Silence | None:
    """Return the silence that matches an alert, if any."""
    for each in silences:
        if each.is_active(now_ms) and each.matches(notice):
            return each
    return None
