"""The automaton of a regular expression.

The tree becomes a program of a few instructions. A name is read with a set of places in the
program, all that could have been reached; which set follows on which is remembered, so that names
after the first mostly cost a look-up a character. Three bounds keep a nuisance from becoming
more: how large a program may be, how much is remembered, and how much work a pattern may make
before it is given up. Expressions beyond them are refused, which RE2 would take.
"""

from dataclasses import dataclass

from barnabas.groups.consumer.regex.characters import WORD, Chars
from barnabas.groups.consumer.regex.syntax import (
    At,
    Choice,
    Node,
    One,
    PatternError,
    Repeat,
    Series,
    Where,
    parse,
)

NODES_MAX = 5000
REMEMBERED_MAX = 10_000
WORK_MAX = 400_000
"""Steps from place to place, a fraction of a second of them."""

EDGE = ""
"""Stands for what is before the first character and after the last."""
SOME_WORD, SOME_OTHER = "w", "-"
"""All that matters of a character once it is read."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read a character of a set and go on."""

    chars: Chars
    then: int


@dataclass(frozen=True, slots=True)
class Check:
    """Go on only at such a place."""

    where: Where
    then: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on in all these ways."""

    ways: tuple[int, ...]


Instruction = Read | Check | Fork
Moment = tuple[frozenset[int], str]
"""Where in the program one can be, and what was read last."""

MATCHED = 0
"""The place at the end of every program."""


class Pattern:
    """A regular expression that can be asked; `PatternError` where it is none, or too much."""

    def __init__(self, text: str) -> None:
        self._program: list[Instruction] = [Fork(())]
        self._nodes = 0
        self._work = 0
        self._begin: Moment = (frozenset({self._compile(parse(text), MATCHED)}), EDGE)
        self._next: dict[tuple[Moment, str], Moment] = {}
        self._end: dict[Moment, bool] = {}

    def matches(self, name: str) -> bool:
        """Tell whether a whole name matches."""
        moment = self._begin
        for char in name:
            after = self._next.get((moment, char))
            if after is None:
                after = self._read(moment, char)
            moment = after
            if not moment[0]:
                return False
        return self._ends(moment)

    def _read(self, moment: Moment, char: str) -> Moment:
        """Return where one can be after one more character, and remember it."""
        reached = (self._program[place] for place in self._reach(moment, char))
        read = (step for step in reached if isinstance(step, Read))
        places = frozenset(step.then for step in read if char in step.chars)
        if len(self._next) >= REMEMBERED_MAX:
            self._next.clear()
            self._end.clear()
        after = (places, SOME_WORD if char in WORD else SOME_OTHER)
        self._next[moment, char] = after
        return after

    def _ends(self, moment: Moment) -> bool:
        """Tell whether nothing more needs to be read."""
        ends = self._end.get(moment)
        if ends is None:
            ends = self._end[moment] = MATCHED in self._reach(moment, EDGE)
        return ends

    def _reach(self, moment: Moment, following: str) -> set[int]:
        """Return every place that can be reached before the following character is read."""
        waiting, before = list(moment[0]), moment[1]
        reached = set(waiting)
        while waiting:
            ways: tuple[int, ...] = ()
            match self._program[waiting.pop()]:
                case Fork(ways=ways):
                    pass
                case Check(where=where, then=then) if _is_at(where, before, following):
                    ways = (then,)
                case _:
                    pass
            new = set(ways) - reached
            reached |= new
            waiting += new
        self._work += len(reached)
        if self._work > WORK_MAX:
            raise PatternError("the expression takes too long to match")
        return reached

    def _compile(self, node: Node, then: int) -> int:
        """Add the instructions for a node that is followed by a place; return where they begin."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise PatternError("the expression is too large")
        match node:
            case One(chars=chars):
                return self._add(Read(chars, then))
            case At(where=where):
                return self._add(Check(where, then))
            case Series(parts=parts):
                for part in reversed(parts):
                    then = self._compile(part, then)
                return then
            case Choice(options=options):
                return self._add(Fork(tuple(self._compile(option, then) for option in options)))
            case Repeat():
                return self._compile_repeat(node, then)

    def _compile_repeat(self, node: Repeat, then: int) -> int:
        start = then
        if node.high is None:
            start = self._add(Fork(()))
            self._program[start] = Fork((self._compile(node.body, start), then))
        else:
            for _ in range(node.high - node.low):
                start = self._add(Fork((self._compile(node.body, start), then)))
        for _ in range(node.low):
            start = self._compile(node.body, start)
        return start

    def _add(self, instruction: Instruction) -> int:
        self._program.append(instruction)
        return len(self._program) - 1


def _is_at(where: Where, before: str, following: str) -> bool:
    match where:
        case Where.BEGIN:
            return before == EDGE
        case Where.END:
            return following == EDGE
        case Where.BOUNDARY:
            return (before in WORD) != (following in WORD)
        case Where.NO_BOUNDARY:
            return (before in WORD) == (following in WORD)
