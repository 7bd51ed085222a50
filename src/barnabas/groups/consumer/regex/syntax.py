"""Reads a regular expression into a tree; what RE2 does not take is refused.

Refused are above all backreferences and looking around, which no automaton can do. Classes of
Unicode scripts other than Latin and Common are refused as well; RE2 knows more of them, but no
name of a topic is written in one.
"""

from dataclasses import dataclass
from enum import Enum

from barnabas.groups.consumer.regex import characters
from barnabas.groups.consumer.regex.characters import Chars

LENGTH_MAX = 10_000
DEPTH_MAX = 100
REPEATS_MAX = 1000
ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
FLAGS = "imsU"


class PatternError(ValueError):
    """Why an expression is refused."""


class Where(Enum):
    """What can be asked of a place between two characters."""

    BEGIN = "begin"
    END = "end"
    BOUNDARY = "boundary"
    NO_BOUNDARY = "no boundary"


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    chars: Chars


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other; none is the empty text."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    """Either of them."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Again and again; no upper bound where there is none."""

    body: "Node"
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class At:
    """A place."""

    where: Where


Node = One | Series | Choice | Repeat | At

PLACES = {"A": Where.BEGIN, "z": Where.END, "b": Where.BOUNDARY, "B": Where.NO_BOUNDARY}
COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
SIGNS: dict[str, Node] = {".": One(characters.ALL), "^": At(Where.BEGIN), "$": At(Where.END)}


def parse(text: str) -> Node:
    """Return the tree of an expression; raise `PatternError` where it is not one."""
    if len(text) > LENGTH_MAX:
        raise PatternError("the expression is too long")
    reader = _Reader(text)
    node = reader.choice()
    if reader.rest:
        raise PatternError("unexpected )")
    return node


class _Reader:
    """A place in the text, and the flags that hold there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._depth = 0
        self._folds = False

    @property
    def rest(self) -> str:
        """What is not read yet."""
        return self._text[self._place :]

    def choice(self) -> Node:
        """Read alternatives up to the end of the group; flags set within end with it."""
        folds = self._folds
        options = [self._series()]
        while self._take("|"):
            options.append(self._series())
        self._folds = folds
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _series(self) -> Node:
        parts: list[Node] = []
        while self._ahead() not in {"", "|", ")"}:
            if self._take("\\Q"):
                parts += self._quoted()
            elif (node := self._atom()) is not None:
                parts.append(self._repeated(node))
        return Series(tuple(parts))

    def _atom(self) -> Node | None:
        char = self._next()
        if char in SIGNS:
            return SIGNS[char]
        if char in COUNTS:
            raise PatternError(f"missing argument to repetition operator: {char}")
        match char:
            case "(":
                return self._group()
            case "[":
                return One(self._fold(self._brackets()))
            case "\\":
                return self._escape()
            case _:
                return self._one(char)

    def _repeated(self, node: Node) -> Node:
        count = self._count()
        if count is None:
            return node
        self._take("?")
        if self._count() is not None:
            raise PatternError("invalid nested repetition operator")
        return Repeat(node, *count)

    def _count(self) -> tuple[int, int | None] | None:
        """Read how often; braces that do not say so stand for themselves."""
        if self._ahead() in COUNTS:
            return COUNTS[self._next()]
        if self._ahead() != "{":
            return None
        body, closed, _ = self.rest[1:].partition("}")
        low, comma, high = body.partition(",")
        if not closed or not _is_number(low) or (high and not _is_number(high)):
            return None
        self._place += len(body) + 2
        least = _repeats(low)
        most = _repeats(high) if high else (None if comma else least)
        if max(least, most or 0) > REPEATS_MAX or (most is not None and least > most):
            raise PatternError(f"invalid repeat count: {{{body}}}")
        return least, most

    def _group(self) -> Node | None:
        if self._take("?") and not self._named() and not self._take(":"):
            return self._flags()
        return self._inner()

    def _inner(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PatternError("expression nests too deeply")
        node = self.choice()
        if not self._take(")"):
            raise PatternError("missing closing )")
        self._depth -= 1
        return node

    def _named(self) -> bool:
        """Read the name of a group, which means nothing here."""
        if not self._take("P<"):
            if not self.rest.startswith("<") or self.rest[1:2] in {"=", "!"}:
                return False
            self._take("<")
        name, closed, _ = self.rest.partition(">")
        if not closed or not name.isascii() or not name.replace("_", "a").isalnum():
            raise PatternError("invalid named capture")
        self._place += len(name) + 1
        return True

    def _flags(self) -> Node | None:
        """Read flags: for the rest of the group, or for what follows a colon."""
        before, on = self._folds, True
        while (char := self._next()) not in {":", ")"}:
            if char == "-" and on:
                on = False
            elif char == "i":
                self._folds = on
            elif char not in FLAGS:
                raise PatternError(f"invalid or unsupported Perl syntax: (?{char}")
        if char == ")":
            return None
        node = self._inner()
        self._folds = before
        return node

    def _escape(self) -> Node:
        char = self._next()
        if char in PLACES:
            return At(PLACES[char])
        return One(self._fold(self._escaped(char)))

    def _escaped(self, char: str) -> Chars:
        """Return what an escape means, within brackets or outside."""
        if char in characters.PERL:
            return characters.PERL[char]
        if char in {"p", "P"}:
            return self._unicode(negated=char == "P")
        return characters.literal(self._escaped_char(char))

    def _escaped_char(self, char: str) -> str:
        if char in ESCAPES:
            return ESCAPES[char]
        if char == "x":
            return self._hexadecimal()
        if char == "0" or (char in "1234567" and self._ahead() in set("01234567")):
            return self._octal(char)
        if char.isascii() and not char.isalnum():
            return char
        raise PatternError(f"invalid escape sequence: \\{char}")

    def _hexadecimal(self) -> str:
        if self._take("{"):
            digits, closed, _ = self.rest.partition("}")
            self._place += len(digits) + len(closed)
        else:
            digits = self._next() + self._next()
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise PatternError(f"invalid escape sequence: \\x{digits}") from None

    def _octal(self, digits: str) -> str:
        while len(digits) < 3 and self._ahead() and self._ahead() in "01234567":
            digits += self._next()
        return chr(int(digits, 8))

    def _unicode(self, *, negated: bool) -> Chars:
        name = self._next()
        if name == "{":
            name, _, _ = self.rest.partition("}")
            self._place += len(name) + 1
        chars = characters.unicode_class(name.removeprefix("^"))
        if chars is None:
            raise PatternError(f"invalid character class: {name}")
        return characters.ALL - chars if negated != name.startswith("^") else chars

    def _brackets(self) -> Chars:
        negated = self._take("^")
        chars = characters.NONE
        first = True
        while first or self._ahead() != "]":
            chars |= self._item()
            first = False
        self._next()
        chars = self._fold(chars)
        return characters.ALL - chars if negated else chars

    def _item(self) -> Chars:
        """Read one item between brackets: a class, a range or a character."""
        if self._take("[:"):
            return self._posix()
        char = self._next()
        if char == "\\":
            escaped = self._next()
            if escaped in characters.PERL or escaped in {"p", "P"}:
                return self._escaped(escaped)
            char = self._escaped_char(escaped)
        if self._ahead() != "-" or self.rest[1:2] in {"]", ""}:
            return characters.literal(char)
        self._next()
        high = self._next()
        if high == "\\":
            high = self._escaped_char(self._next())
        if high < char:
            raise PatternError(f"invalid character class range: {char}-{high}")
        return characters.between(char, high)

    def _posix(self) -> Chars:
        name, closed, _ = self.rest.partition(":]")
        chars = characters.POSIX.get(name.removeprefix("^"))
        if not closed or chars is None:
            raise PatternError(f"invalid character class range: [:{name}:]")
        self._place += len(name) + 2
        return characters.ALL - chars if name.startswith("^") else chars

    def _quoted(self) -> list[Node]:
        """Read characters that stand for themselves; what repeats, repeats the last."""
        quoted, _, _ = self.rest.partition("\\E")
        self._place = min(self._place + len(quoted) + 2, len(self._text))
        nodes = [self._one(char) for char in quoted]
        return [*nodes[:-1], self._repeated(nodes[-1])] if nodes else []

    def _one(self, char: str) -> Node:
        return One(self._fold(characters.literal(char)))

    def _fold(self, chars: Chars) -> Chars:
        return characters.fold(chars) if self._folds else chars

    def _ahead(self) -> str:
        return self._text[self._place : self._place + 1]

    def _next(self) -> str:
        char = self._ahead()
        if not char:
            raise PatternError("the expression ends too early")
        self._place += 1
        return char

    def _take(self, wanted: str) -> bool:
        taken = self._text.startswith(wanted, self._place)
        self._place += len(wanted) if taken else 0
        return taken


def _repeats(text: str) -> int:
    """Return a number, or one that is too large for it; Python reads only so many digits."""
    return int(text) if len(text) <= 4 else REPEATS_MAX + 1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
