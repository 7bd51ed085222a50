"""Tests how values are laid out for people."""

import json

import pytest

from barnabas.console.records.record_views import TEXT_BYTES_MAX, Shown, content_json, indented


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": {}, "b": []},
        [1, [2, {"c": "}"}], "x"],
        {"a": [None, True, "é, : ["]},
        "text",
        0,
    ],
)
def test_json_has_two_spaces_a_level(value: object) -> None:
    expected = json.dumps(value, indent=2, ensure_ascii=False)
    for given in (json.dumps(value, ensure_ascii=False), expected):
        assert indented(given, len(expected)) == expected


def test_json_far_behind_the_limit_is_not_laid_out() -> None:
    text = json.dumps(list(range(1_000)))
    whole, cut = indented(text, 1 << 30), indented(text, 20)
    assert whole.startswith(cut)
    assert 20 < len(cut) < 40


def test_a_long_value_is_cut_and_says_so() -> None:
    found = content_json(json.dumps(["x"] * TEXT_BYTES_MAX).encode(), Shown())
    assert (len(found["text"]), found["truncated"]) == (TEXT_BYTES_MAX, True)
