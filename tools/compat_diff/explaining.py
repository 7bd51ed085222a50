"""Matches differences with the explanations in docs/compatibility.md.

An entry of the table names a sentence of the document. `check_sentences` finds it there, so that an
explanation cannot outlive its sentence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.protocol.message import Message
from tools.compat_diff.comparing import Found

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"

Test = Callable[[Found, Message | None], bool]


def always(found: Found, request: Message | None) -> bool:
    """Return True for any request and response."""
    del found, request
    return True


@dataclass(frozen=True)
class Explained:
    """An intended difference."""

    sentence: str
    """Words of docs/compatibility.md that explain it."""
    apis: str
    """A pattern of API names."""
    path: str = ".*"
    """A pattern of the field's path."""
    when: Test = always
    """Another condition."""
    versions: range = range(100)
    diverges: bool = False
    """Whether the brokers' states differ afterwards."""
    drawn_only: bool = False
    """Whether it applies only to random requests with several mistakes."""


def explanation(
    table: Sequence[Explained],
    api: str,
    version: int,
    request: Message | None,
    found: Found,
    *,
    drawn: bool = False,
) -> Explained | None:
    """Return the entry that explains a difference."""
    for entry in table:
        if (
            re.fullmatch(entry.apis, api)
            and version in entry.versions
            and (drawn or not entry.drawn_only)
            and re.fullmatch(entry.path, found.path)
            and entry.when(found, request)
        ):
            return entry
    return None


def check_sentences(table: Sequence[Explained], document: str) -> list[str]:
    """Return the sentences that the document does not have."""
    words = " ".join(document.split())
    return [e.sentence for e in table if " ".join(e.sentence.split()) not in words]
