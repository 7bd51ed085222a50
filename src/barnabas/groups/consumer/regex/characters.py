"""Sets of the characters that names of topics are made of."""

import string
from unicodedata import category

Chars = frozenset[str]

LETTERS: Chars = frozenset(string.ascii_letters)
DIGITS: Chars = frozenset(string.digits)
WORD: Chars = LETTERS | DIGITS | {"_"}
ALL: Chars = WORD | {".", "-"}
NONE: Chars = frozenset()

PERL: dict[str, Chars] = {
    "d": DIGITS,
    "D": ALL - DIGITS,
    "s": NONE,
    "S": ALL,
    "w": WORD,
    "W": ALL - WORD,
}
"""Classes that are written with a backslash."""

POSIX: dict[str, Chars] = {
    "alnum": LETTERS | DIGITS,
    "alpha": LETTERS,
    "ascii": ALL,
    "blank": NONE,
    "cntrl": NONE,
    "digit": DIGITS,
    "graph": ALL,
    "lower": frozenset(string.ascii_lowercase),
    "print": ALL,
    "punct": frozenset("._-"),
    "space": NONE,
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}
"""Classes that are written as [:name:] within brackets."""

CATEGORIES = {
    letter + kind
    for letter, kinds in {
        "C": "cfos",
        "L": "lmotu",
        "M": "cen",
        "N": "dlo",
        "P": "cdefios",
        "S": "ckmo",
        "Z": "lps",
    }.items()
    for kind in ("", *kinds)
}
"""The general categories of Unicode, each letter also on its own."""


def unicode_class(name: str) -> Chars | None:
    """Return a class that is written as \\p{name}; of the scripts only those that names can use."""
    if name in CATEGORIES:
        return frozenset(char for char in ALL if category(char).startswith(name))
    return {"Any": ALL, "Latin": LETTERS, "Common": ALL - LETTERS}.get(name)


def between(low: str, high: str) -> Chars:
    """Return the characters of a range."""
    return frozenset(char for char in ALL if low <= char <= high)


def literal(char: str) -> Chars:
    """Return a single character; none where no name has it."""
    return ALL & {char}


def fold(chars: Chars) -> Chars:
    """Return the same, in either case."""
    return chars | {char.swapcase() for char in chars}
