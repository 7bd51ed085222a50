"""Patterns in the syntax of RE2, against names of topics."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.consumer.regex.pattern import WORK_MAX, Pattern
from barnabas.groups.consumer.regex.syntax import PatternError


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
    compiled = Pattern(pattern)
    legal = set(string.ascii_letters + string.digits + "._-")
    assert [name for name in yes if set(name) <= legal and not compiled.matches(name)] == []
    assert [name for name in no if compiled.matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "(a", "[", "[a", "[a-", "[b-a]", "[[:none:]]", "*", "a|*", "+a", "a**",
        "a*+", "a{2}{3}", "a{1001}", "a{3,2}", "\\", "\\8", "(a)\\1", "\\h", "\\p{None}", "\\xg0",
        "\\x{110000}", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?P=a)", "(?P<", "(?P<a-b>c)",
        "(?#a)", "(?z)", "(?", "(" * 101 + ")" * 101, "(((a{100}){100}){100})",
        "((((){1000}){1000}){1000})",
        "a" * 10_001,
        "a{" + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a|aa)+", "(.*)*(.*)*b", "(a?){60}a{60}"])
def test_what_would_hold_up_backtracking_is_quick(pattern: str) -> None:
    compiled = Pattern(pattern)
    assert not compiled.matches("a" * 200 + "-")
    assert compiled._work < WORK_MAX / 10


def test_what_takes_too_long_is_given_up() -> None:
    compiled = Pattern("(.*a.{800})*")
    names = [f"{number:b}".replace("0", "a").replace("1", "b") * 20 for number in range(1000)]
    with pytest.raises(PatternError, match="too long"):
        list(map(compiled.matches, names))


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
    compiled = Pattern(pattern)
    for name in names:
        assert compiled.matches(name) == (expected.fullmatch(name) is not None), (pattern, name)
