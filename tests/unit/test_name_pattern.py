"""Tests regular expressions in the syntax of RE2, matched against topic names."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model import name_pattern
from barnabas.model.name_pattern import LENGTH_MAX, NamePattern, PatternError


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("abc", ["abc"], ["ab", "abcd", "xabc"]),
        ("a|bc|", ["a", "bc", ""], ["b"]),
        ("a.c", ["abc", "a.c"], ["ac", "abbc"]),
        (r"a\.c", ["a.c"], ["abc"]),
        ("[a-c_]+", ["abc_", "a"], ["d", ""]),
        ("[^a-c]", ["d", "-"], ["a", "dd"]),
        ("[]a]", ["a"], ["b"]),
        ("[a-]+", ["a-a"], ["b"]),
        ("[[:alpha:][:digit:]]+", ["a1"], ["a-1"]),
        ("[[:^alpha:]]", ["1", "."], ["a"]),
        (r"[\d.]+", ["1.2"], ["a"]),
        (r"\w+\W\d", ["ab-1"], ["ab1", "ab-a"]),
        (r"\pL\p{Nd}\PL", ["a1-", "a11"], ["11-"]),
        (r"\p{^L}\p{Latin}", ["1a"], ["aa"]),
        ("a{2}b{0,1}c{1,}", ["aabc", "aacc"], ["abc", "aabbc"]),
        ("a{,2}", [], ["a", "aa"]),
        ("x*?y+?z??", ["y", "xyz"], ["x"]),
        ("(a|b)*", ["", "abba"], ["abc"]),
        ("(?:ab)+", ["abab"], ["aba"]),
        ("(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        ("(?i)ab|C", ["AB", "aB", "c"], ["abc"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("a(?i)b(?-i)c", ["aBc"], ["aBC", "ABc"]),
        ("((?i)a)b", ["Ab"], ["AB"]),
        ("^ab$", ["ab"], ["b"]),
        ("a^b", [], ["ab"]),
        ("(?ms)^a.$", ["ab"], ["a"]),
        (r"\Aa\z", ["a"], ["aa"]),
        (r"a\b.\bb", ["a-b"], ["aab"]),
        (r"a\B.b", ["aab"], ["a-b"]),
        (r"\Qa.b\E+", ["a.b", "a.bbb"], ["aab"]),
        (r"\Q.*\E", [], ["a", "."]),
        (r"\x61\x{62}\141", ["aba"], ["abb"]),
        (r"\-\_", ["-_"], ["-"]),
        ("ü|a", ["a"], [""]),
        ("(a*)*", ["", "aaa"], ["b"]),
        ("(|a)+", ["aa"], ["b"]),
    ],
)
def test_whole_names_match(pattern: str, yes: list[str], no: list[str]) -> None:
    compiled = NamePattern(pattern)
    legal = set(string.ascii_letters + string.digits + "._-")
    assert [name for name in yes if set(name) <= legal and not compiled.matches(name)] == []
    assert [name for name in no if compiled.matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "(a", "[", "[a", "[a-", "[b-a]", "[[:none:]]", "*", "a|*", "+a", "a**",
        "a*+", "a{2}{3}", "a{1001}", "a{3,2}", "\\", "\\8", "(a)\\1", "\\h", "\\p{None}", "\\xg0",
        "\\x{110000}", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?P=a)", "(?P<", "(?P<a-b>c)",
        "(?#a)", "(?z)", "(?", "(((a{100}){100}){100})",
        "((((){1000}){1000}){1000})", "a{99999999}", r"\pL{1000}", "." * LENGTH_MAX,
        "a" * (LENGTH_MAX + 1),
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        NamePattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*", "missing argument to repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<a-b>c)", "invalid named capture"),
        ("[b-a]", "invalid character class range"),
        ("\\8", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("." * LENGTH_MAX, "the expression is too large"),
    ],
)
def test_the_reason_of_a_refusal_is_the_one_that_kafka_gives(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as refused:
        NamePattern(pattern)
    assert str(refused.value) == reason


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a|aa)+", "(.*)*(.*)*b", "(a?){60}a{60}"])
def test_what_would_hold_up_backtracking_does_not(pattern: str) -> None:
    compiled = NamePattern(pattern)
    assert not any(compiled.matches("a" * 200 + "-") for _ in range(100))


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_pattern, "WORK_MAX", 1_000_000)
    compiled = NamePattern("(.*a.{200})*")
    names = [f"{number:b}".replace("0", "a").replace("1", "b") * 20 for number in range(1000)]
    with pytest.raises(PatternError, match="too long"):
        list(map(compiled.matches, names))


def test_a_plain_expression_has_room_for_a_million_topics() -> None:
    compiled = NamePattern("logs-.*|metrics-[a-z]+")
    assert compiled._characters_left > 1_000_000 * 20


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\.", "-", "^", "$", r"\b"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.lists(st.text("ab1.-", max_size=6), max_size=5))
def test_it_matches_what_python_matches(pattern: str, names: list[str]) -> None:
    expected = re.compile(pattern)
    compiled = NamePattern(pattern)
    for name in names:
        assert compiled.matches(name) == (expected.fullmatch(name) is not None), (pattern, name)
