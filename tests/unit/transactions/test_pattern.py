"""Patterns of transactional ids: what `re` says of a whole id, but in linear time."""

import re

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.transactions.pattern import Pattern

NAMES = ["", "a", "b", "ab", "aab", "abab", "app-1", "app-12", "App.x", "a|b", "a\nb", "((", "aaaa"]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        ".*",
        "",
        "a|b",
        "(ab)*",
        "(?:a|b)+",
        "(?P<x>a+)b?",
        "app-\\d+",
        "app-[0-9]{2}",
        "[^a]*",
        "a{2,}b",
        "a{1,3}b{0,1}",
        "a{0}b",
        "^a$",
        "(^a|b$)b?",
        "a.b",
        "a\\|b",
        "\\(\\(",
        "(a*)*b",
        "[]a]*",
        "App\\.x|",
        "\\w+-\\w+",
        "a*?b",
    ],
)
def test_it_means_what_it_means_elsewhere(text: str) -> None:
    found = [name for name in NAMES if Pattern(text).matches(name)]
    assert found == [name for name in NAMES if re.fullmatch(text, name, re.DOTALL)]


@pytest.mark.parametrize(
    "text",
    [
        "(",
        "a)",
        "*",
        "a**b{",
        "[",
        "[z-a]",
        "\\",
        "\\1",
        "\\bword",
        "(?i)a",
        "(?=a)",
        "(?<!a)b",
        "a{3,2}",
        "a{1001}",
        "(a{100}){100}",
        "[[:alpha:]]",
        "\\pL",
        "(" * 60 + "a" + ")" * 60,
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        Pattern(text)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "a*a*a*a*a*b", "(.*)*x", "(a?){50}a{50}"])
def test_nothing_takes_for_ever(text: str) -> None:
    assert not Pattern(text).matches("a" * 200)


def test_too_much_work_is_refused() -> None:
    pattern = Pattern(".*(.?){600}x")
    with pytest.raises(ApiError, match="too much work"):
        pattern.matches("a" * 30_000)
