"""A pattern of transactional ids, matched in linear time.

Anybody may send one, and a broker of one thread must not be held up by it. Python's `re`
backtracks: `(a+)+` on an unlucky id takes longer than anybody waits. So the pattern becomes a
program that follows all ways through an id at once (Thompson, 1968); `re` is asked about single
characters only.

It knows what patterns of ids are made of: characters, classes, groups, alternatives, repetitions,
`^` and `$`. Of what RE2 knows beyond that, flags and `\\b` are refused, as are patterns that are
too large or make too much work.
"""

import re
from dataclasses import dataclass

from barnabas.model.errors import ApiError, ErrorCode

SIZE_MAX = 2000
"""Instructions; a repetition counts as often as it is written out."""
REPEATS_MAX = 1000
DEPTH_MAX = 50
WORK_MAX = 2_000_000
"""Steps that one request may take, a fraction of a second of them."""

_ATOM = re.compile(
    r"\\[^bBAzZ0-9]|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\()\[|*+?{^$]",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:([*+?])|\{(\d{1,4})(?:(,)(\d{0,4}))?\})\??")
_GROUP = re.compile(r"\((?:\?:|\?P?<\w+>|(?!\?))")
_ODD_IN_CLASSES = ("[", "--", "&&", "~~", "||")
"""What may mean something else to `re` one day."""
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(slots=True)
class Read:
    """Read one character that an expression takes."""

    takes: re.Pattern[str]


@dataclass(slots=True)
class Split:
    """Go on at several places, which are told by their distance."""

    targets: list[int]


@dataclass(slots=True)
class At:
    """Go on only at the start, or only at the end."""

    end: bool


Program = list[Read | Split | At]
"""What is not said otherwise goes on with the next instruction; past the last is a match."""


class Pattern:
    """One pattern; raises `ApiError` where it is none."""

    def __init__(self, text: str) -> None:
        self._program = Reader(text).program()
        self._work = 0

    def matches(self, name: str) -> bool:
        """Tell whether a whole name is what the pattern describes."""
        places = self._closure([0], at_start=True, at_end=not name)
        for number, character in enumerate(name, 1):
            moved = [
                place + 1
                for place in places
                if place < len(self._program)
                and isinstance(step := self._program[place], Read)
                and step.takes.fullmatch(character)
            ]
            places = self._closure(moved, at_start=False, at_end=number == len(name))
            if not places:
                return False
        return len(self._program) in places

    def _closure(self, places: list[int], *, at_start: bool, at_end: bool) -> dict[int, None]:
        """Return every place that can be reached without reading."""
        reached: dict[int, None] = {}
        while places:
            place = places.pop()
            if place in reached:
                continue
            reached[place] = None
            step = self._program[place] if place < len(self._program) else None
            if isinstance(step, Split):
                places += [place + target for target in step.targets]
            elif isinstance(step, At) and (at_end if step.end else at_start):
                places.append(place + 1)
        self._work += len(reached)
        if self._work > WORK_MAX:
            raise _refused("the pattern makes too much work")
        return reached


class Reader:
    """Writes the program of a pattern while it reads it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def program(self) -> Program:
        """Return the program of the whole pattern."""
        whole = self._choice()
        if self._position < len(self._text):
            raise _refused(f"there is no group to close at {self._position}")
        return whole

    def _choice(self) -> Program:
        choice = self._series()
        while self._next("|"):
            choice = _either(choice, self._series())
        return choice

    def _series(self) -> Program:
        series: Program = []
        while self._position < len(self._text) and self._text[self._position] not in "|)":
            series = _joined(series, self._repeated(self._one()))
        return series

    def _one(self) -> Program:
        if self._next("^"):
            return [At(end=False)]
        if self._next("$"):
            return [At(end=True)]
        group = _GROUP.match(self._text, self._position)
        if group is not None:
            return self._group(group.end())
        atom = _ATOM.match(self._text, self._position)
        if atom is None:
            raise _refused(f"what is at {self._position} is not known")
        self._position = atom.end()
        text = atom.group()
        if text.startswith("[") and any(sign in text[1:] for sign in _ODD_IN_CLASSES):
            raise _refused(f"classes like {text} are not known")
        try:
            return [Read(re.compile(text, re.DOTALL))]
        except re.error as error:
            raise _refused(str(error)) from error

    def _group(self, position: int) -> Program:
        self._position = position
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _refused("groups are nested too deeply")
        inner = self._choice()
        if not self._next(")"):
            raise _refused("a group is not closed")
        self._depth -= 1
        return inner

    def _repeated(self, one: Program) -> Program:
        found = _REPEAT.match(self._text, self._position)
        if found is None:
            return one
        self._position = found.end()
        sign, least, comma, most = found.groups()
        if sign:
            low, high = _SIGNS[sign]
        else:
            low = int(least)
            high = low if not comma else int(most) if most else None
        if max(low, high or 0) > REPEATS_MAX or (high is not None and high < low):
            raise _refused("a repetition is out of bounds")
        return _times(one, low, high)

    def _next(self, character: str) -> bool:
        found = self._text.startswith(character, self._position)
        self._position += found
        return found


def _times(one: Program, low: int, high: int | None) -> Program:
    result: Program = []
    for _ in range(low):
        result = _joined(result, one)
    if high is None:
        # Skip it or go through it, and then the same again.
        loop = _joined(_joined([Split([1, len(one) + 2])], one), [Split([-len(one) - 1])])
        return _joined(result, loop)
    for _ in range(high - low):
        result = _joined(result, _joined([Split([1, len(one) + 1])], one))
    return result


def _either(first: Program, second: Program) -> Program:
    skip: Program = [Split([len(second) + 1])]
    return _joined(_joined([Split([1, len(first) + 2])], first), _joined(skip, second))


def _joined(first: Program, second: Program) -> Program:
    if len(first) + len(second) > SIZE_MAX:
        raise _refused("the pattern is too large")
    return first + second


def _refused(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, why)
