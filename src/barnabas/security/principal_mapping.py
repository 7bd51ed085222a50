"""Maps the name in a client certificate to a principal, by `ssl.principal.mapping.rules` of Kafka.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/      the first group becomes the name
    RULE:^CN=(.*?),.*$/$1/L                    the same in lower case (U: in upper case)
    DEFAULT                                    the whole distinguished name

Rules are tried in order, and the first that matches the whole name decides. A name that no rule
matches is refused. A slash within a rule is written `\\/`.

Expressions are matched by RE2, which does not backtrack: the names come from clients. It has no
lookaheads and no back references within an expression. Java would replace an empty match at the
end of a name as well, so that `RULE:.*/admin/` gives "adminadmin"; here it gives "admin".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DEFAULT = "DEFAULT"
EXAMPLE = "RULE:^CN=(.*?),.*$/$1/L"
MEMORY_MAX = 1024 * 1024

_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"RULE:{_PART}/{_PART}/([LU]?)")
_NEXT = re.compile(rf"\s*(DEFAULT|RULE:{_PART}/{_PART}/[LU]?)\s*(?:,|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


class MappingError(ValueError):
    """A rule cannot be read; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: an expression, and the name that replaces what it matches."""

    expression: Any
    """Compiled by RE2; None for DEFAULT, which keeps the name."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the principal's name; None if the rule does not match."""
        if self.expression is None:
            return name
        found = self.expression.fullmatch(name.encode())
        if found is None:
            return None
        groups: int = self.expression.groups

        def expanded(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            number = int(reference[2])
            return (found.group(number) or b"").decode() if number <= groups else reference[0]

        mapped = _REFERENCE.sub(expanded, self.replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: Iterable[str]) -> None:
        """Read the rules; raise `MappingError` if one is invalid."""
        self._rules = [_read(rule) for rule in rules] or [Rule(None)]

    def principal_of(self, distinguished_name: str) -> str | None:
        """Return the name of a certificate's principal; None if no rule matches."""
        for rule in self._rules:
            found = rule.apply(distinguished_name)
            if found is not None:
                return found
        return None


def split_rules(text: str) -> tuple[str, ...]:
    """Return the rules of a text in which commas separate them, as in Kafka's configuration."""
    rules = []
    position = 0
    while position < len(text.rstrip()):
        found = _NEXT.match(text, position)
        if found is None:
            rest = text[position:].strip()
            raise MappingError(f"write {EXAMPLE!r} or {DEFAULT!r} in place of {rest!r}")
        rules.append(found[1])
        position = found.end()
    return tuple(rules)


def _read(text: str) -> Rule:
    text = text.strip()
    if text == DEFAULT:
        return Rule(None)
    found = _RULE.fullmatch(text)
    if found is None:
        raise MappingError(f"write {EXAMPLE!r} or {DEFAULT!r} in place of {text!r}")
    expression, replacement, case = found.groups()
    return Rule(_compiled(expression.replace("\\/", "/")), replacement, case)


def _compiled(expression: str) -> Any:  # noqa: ANN401 - RE2 has no types
    import re2  # noqa: PLC0415 - only listeners with client certificates need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    try:
        return re2.compile(expression.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        problem = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise MappingError(f"{expression!r} is not an expression of RE2: {problem}") from None
