"""Parses a file of statements without Spark.

Three statements are ours; Spark runs every other one unchanged:

    CREATE SOURCE name [(column TYPE [NOT NULL], ...)] [FROM TOPIC topic] [USING format]
        [OPTIONS (option 'value', ...)];
    CREATE STREAM name [INTO TOPIC topic | INTO TABLE table] [USING format]
        [OPTIONS (option 'value', ...)] AS SELECT ...;
    CREATE FUNCTION name FROM 'module[:function]' [RETURNS TYPE];

A name or option may be in back quotes, a topic in single quotes. An error names the line of the
file and says what to type.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<open>'|"|`|/\*)
      | (?P<word>(?:[\w.$]|-(?!-))+)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
OPENINGS = {"'": "string", '"': "string", "`": "name in back quotes", "/*": "comment"}
SOURCE_FORM = (
    "CREATE SOURCE name (column TYPE, ...) FROM TOPIC topic OPTIONS (option 'value', ...);"
)
STREAM_FORM = "CREATE STREAM name INTO TOPIC topic OPTIONS (option 'value', ...) AS SELECT ...;"
FUNCTION_FORM = "CREATE FUNCTION name FROM 'module' RETURNS TYPE;"
NAME = re.compile(r"[A-Za-z_]\w*")
TOPIC_NAME = re.compile(r"[\w.-]{1,249}")


class StatementError(Exception):
    """A statement cannot be run; the text names its line and says what to type."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(f"line {line}: {sentence}")
        self.line = line
        self.sentence = sentence


class Into(Enum):
    """The target of a stream."""

    TOPIC = "topic"
    TABLE = "table"


@dataclass(frozen=True, kw_only=True)
class CreateSource:
    """A stream of rows to select from."""

    line: int
    name: str
    columns: str | None
    """The fields of JSON documents, in Spark's schema syntax; None for plain records."""
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CreateStream:
    """A streaming query with a name and a target."""

    line: int
    name: str
    into: Into
    target: str
    format: str
    options: Mapping[str, str]
    query: str
    query_line: int


@dataclass(frozen=True, kw_only=True)
class CreateFunction:
    """A Python function that queries call."""

    line: int
    name: str
    module: str
    function: str
    returns: str | None


@dataclass(frozen=True)
class SparkStatement:
    """A statement that Spark runs unchanged."""

    line: int
    text: str


Statement: TypeAlias = CreateSource | CreateStream | CreateFunction | SparkStatement


class Token(NamedTuple):
    """A token of a statement."""

    kind: str
    text: str
    start: int
    line: int


def parse(text: str) -> list[Statement]:
    """Parse the statements of a file; raise `StatementError` for the first invalid one."""
    found = [_statement(Reader(text, tokens)) for tokens in _split(text)]
    _refuse_twice(found)
    return found


def _refuse_twice(statements: Sequence[Statement]) -> None:
    """Refuse names that are taken: checkpoints are kept by name, and a table has one writer."""
    seen: dict[str, int] = {}
    for each in statements:
        taken = []
        if isinstance(each, CreateSource | CreateStream):
            taken.append(each.name)
        if isinstance(each, CreateStream) and each.into is Into.TABLE:
            taken.append(f"table {each.target}")
        for name in taken:
            first = seen.setdefault(name.lower(), each.line)
            if first != each.line:
                raise StatementError(
                    each.line, f"{name} is already defined on line {first}; rename this one"
                )


def tokens_of(text: str) -> Iterator[Token]:
    """Return the tokens of a text, without comments and space."""
    line = 1
    for found in TOKEN.finditer(text):
        kind = found.lastgroup
        assert kind is not None
        if kind == "open":
            raise StatementError(
                line, f"the {OPENINGS[found[0]]} that begins here is not closed; close it"
            )
        if kind != "space":
            yield Token(kind, found[0], found.start(), line)
        line += found[0].count("\n")


def _split(text: str) -> Iterator[list[Token]]:
    tokens: list[Token] = []
    for each in tokens_of(text):
        if each.kind == "sign" and each.text == ";":
            if tokens:
                yield tokens
            tokens = []
        else:
            tokens.append(each)
    if tokens:
        yield tokens


class Reader:
    """The tokens of one statement, taken one after another."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        last = tokens[-1]
        self._text = text
        self._end = last.start + len(last.text)
        self._tokens = tokens
        self._next = 0
        self.line = tokens[0].line

    @property
    def here(self) -> int:
        """The line of the next token, or of the last one."""
        return self._tokens[min(self._next, len(self._tokens) - 1)].line

    @property
    def is_done(self) -> bool:
        """Whether all tokens were taken."""
        return self._next == len(self._tokens)

    def takes(self, *words: str) -> bool:
        """Take these words if they are next."""
        there = self._tokens[self._next : self._next + len(words)]
        if [each.text.upper() for each in there if each.kind in {"word", "sign"}] != list(words):
            return False
        self._next += len(words)
        return True

    def rest(self) -> str:
        """Take the rest of the text unchanged."""
        start = self._tokens[self._next].start
        self._next = len(self._tokens)
        return self._text[start : self._end]

    def whole(self) -> str:
        """Return the text of the whole statement."""
        return self._text[self._tokens[0].start : self._end]

    def take(self, what: str, form: str) -> str:
        """Take a name, with or without quotes."""
        if self.is_done or self._tokens[self._next].kind == "sign":
            shown = "the end" if self.is_done else self._tokens[self._next].text
            raise StatementError(self.here, f"{what} is missing before {shown}; type: {form}")
        token = self._tokens[self._next]
        self._next += 1
        return unquoted(token)

    def inside(self, form: str) -> list[Token]:
        """Take the text in parentheses; the opening one has been taken."""
        depth = 1
        found: list[Token] = []
        while not self.is_done:
            token = self._tokens[self._next]
            self._next += 1
            if token.kind == "sign":
                depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:
                return found
            found.append(token)
        raise StatementError(self.here, f"a closing parenthesis is missing; type: {form}")

    def written(self, tokens: list[Token]) -> str:
        """Return the text of tokens."""
        last = tokens[-1]
        return self._text[tokens[0].start : last.start + len(last.text)]


def unquoted(token: Token) -> str:
    """Return the value of a token."""
    if token.kind == "name":
        return token.text[1:-1].replace("``", "`")
    if token.kind == "text":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
    return token.text


def _statement(reader: Reader) -> Statement:
    if reader.takes("CREATE", "SOURCE"):
        return _source(reader)
    if reader.takes("CREATE", "STREAM"):
        return _stream(reader)
    line = reader.line
    if reader.takes("CREATE", "FUNCTION"):
        name = reader.take("the name of the function", FUNCTION_FORM)
        if reader.takes("FROM"):
            return _function(reader, _name(reader, name, "function"))
    return SparkStatement(line, reader.whole())


def _source(reader: Reader) -> CreateSource:
    name = _name(reader, reader.take("the name of the source", SOURCE_FORM), "source")
    columns = None
    if reader.takes("("):
        inside = reader.inside(SOURCE_FORM)
        if not inside:
            raise StatementError(reader.here, f"there are no columns; type: {SOURCE_FORM}")
        columns = reader.written(inside)
    options: dict[str, str] = {}
    if reader.takes("FROM", "TOPIC"):
        options["subscribe"] = _topic(reader, SOURCE_FORM)
    kind = reader.take("a format", SOURCE_FORM) if reader.takes("USING") else "barnabas"
    options |= _options(reader, SOURCE_FORM)
    _end(reader, SOURCE_FORM)
    subscribed = {each.lower() for each in options} & {"assign", "subscribe", "subscribepattern"}
    if kind == "barnabas" and not subscribed:
        raise StatementError(
            reader.line, f"source {name} does not say what to read; type: {SOURCE_FORM}"
        )
    return CreateSource(line=reader.line, name=name, columns=columns, format=kind, options=options)


def _stream(reader: Reader) -> CreateStream:
    name = _name(reader, reader.take("the name of the stream", STREAM_FORM), "stream")
    into, target = Into.TOPIC, name
    if reader.takes("INTO", "TOPIC"):
        target = _topic(reader, STREAM_FORM)
    elif reader.takes("INTO", "TABLE"):
        given = reader.take("the name of the table", STREAM_FORM)
        into, target = Into.TABLE, _name(reader, given, "table")
    default = "barnabas" if into is Into.TOPIC else "parquet"
    kind = reader.take("a format", STREAM_FORM) if reader.takes("USING") else default
    options = _options(reader, STREAM_FORM)
    if not reader.takes("AS") or reader.is_done:
        raise StatementError(reader.here, f"AS SELECT ... is missing; type: {STREAM_FORM}")
    query_line = reader.here
    return CreateStream(
        line=reader.line,
        name=name,
        into=into,
        target=target,
        format=kind,
        options=options,
        query=reader.rest(),
        query_line=query_line,
    )


def _function(reader: Reader, name: str) -> CreateFunction:
    module, _, function = reader.take("the module", FUNCTION_FORM).partition(":")
    returns = None
    if reader.takes("RETURNS") and not reader.is_done:
        returns = reader.rest()
    _end(reader, FUNCTION_FORM)
    return CreateFunction(
        line=reader.line, name=name, module=module, function=function or name, returns=returns
    )


def _options(reader: Reader, form: str) -> dict[str, str]:
    if not reader.takes("OPTIONS", "("):
        return {}
    line = reader.here
    tokens = [each for each in reader.inside(form) if each.text not in {",", "="}]
    pairs = list(zip(tokens[::2], tokens[1::2], strict=False))
    wrong = [key for key, value in pairs if "sign" in {key.kind, value.kind}]
    if len(tokens) % 2 or wrong:
        raise StatementError(
            wrong[0].line if wrong else line,
            "an option is a name and a value in quotes; type: OPTIONS (startingOffsets 'latest')",
        )
    return {unquoted(key): unquoted(value) for key, value in pairs}


def _name(reader: Reader, name: str, what: str) -> str:
    if NAME.fullmatch(name) is None:
        raise StatementError(
            reader.here,
            f"{name} cannot be the name of a {what}; use letters, digits and _ , such as "
            f"{re.sub(r'[^A-Za-z0-9_]+', '_', name)}",
        )
    return name


def _topic(reader: Reader, form: str) -> str:
    name = reader.take("the name of the topic", form)
    if TOPIC_NAME.fullmatch(name) is None:
        raise StatementError(
            reader.here, f"{name} cannot be the name of a topic; use letters, digits, . _ and -"
        )
    return name


def _end(reader: Reader, form: str) -> None:
    if not reader.is_done:
        line = reader.here
        raise StatementError(line, f"{reader.rest().split()[0]} is not expected; type: {form}")
