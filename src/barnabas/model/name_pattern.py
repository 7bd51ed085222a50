"""Matches names against the regular expressions that clients send.

Group members subscribe to topics with one (`SubscribedTopicRegex`, KIP-848), and ListTransactions
filters transactional ids by one (KIP-1152). The broker has one thread, so an expression must not
hold it up. RE2 does not backtrack: it reads each character of a name once. As measured
with hostile expressions, a character takes up to two microseconds, or a nanosecond for each
instruction of a program of more than 2,000. The bounds below limit time and memory.

Kafka uses re2j, the same language in Java. What RE2 does otherwise:

- RE2 refuses nested repetitions of more than 1,000 in all, such as `(a{30}){40}`.
- RE2 takes `\\C`, group names outside ASCII and the same group name twice; re2j refuses them.
- RE2 takes a repetition count of more than nine digits, and a repetition after a literal `{`, as
  literal text; re2j refuses them. No topic name has a brace, so they match nothing.
"""

from typing import Any

LENGTH_MAX = 10_000
MEMORY_MAX = 256 * 1024
"""Bytes for the program (about 10,000 instructions) and for the states that matching adds."""
WORK_MAX = 1_000_000_000
"""Instructions times characters: about a second for a large program at worst.

A small program never reaches it, so its time is bounded only by the characters of all names.
"""

DESCRIPTIONS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""What re2j, and so Kafka, says instead of RE2's messages."""


class PatternError(ValueError):
    """An expression is invalid, or beyond the bounds."""


class NamePattern:
    """A compiled expression; raises `PatternError` if the expression is refused."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_MAX:
            raise PatternError("the expression is too long")
        self._compiled = _compile(text)
        self._characters_left = WORK_MAX // self._compiled.programsize

    def matches(self, name: str) -> bool:
        """Tell whether a whole name matches; raise `PatternError` after too much work."""
        self._characters_left -= len(name)
        if self._characters_left < 0:
            raise PatternError("the expression takes too long to match")
        return self._compiled.fullmatch(name.encode()) is not None


def _compile(text: str) -> Any:  # noqa: ANN401 - the library has no types
    import re2  # noqa: PLC0415 - most brokers never need it, and it would delay their start

    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise PatternError(_description(error.args[0])) from None


def _description(message: bytes) -> str:
    """Return why RE2 refused an expression, in Kafka's words and without the expression."""
    text = message.decode(errors="replace")
    if text.startswith("pattern too large"):
        return "the expression is too large"
    reason = text.partition(": ")[0]
    return DESCRIPTIONS.get(reason, reason)
