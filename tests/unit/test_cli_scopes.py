"""Tests how partitions are named on the command line."""

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.scopes import Scope, expand, parse_scope


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("orders", ("orders", None)),
        ("orders:0", ("orders", [0])),
        ("orders:3,1,1", ("orders", [1, 3])),
        ("orders:0,5-7", ("orders", [0, 5, 6, 7])),
    ],
)
def test_every_form_is_read(text: str, scope: Scope) -> None:
    assert parse_scope(text, "--topic") == scope


@pytest.mark.parametrize("text", ["orders:", "orders:x", "orders:-1", "orders:3-1", "orders:1,"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(AdminError, match="write orders:0"):
        parse_scope(text, "--topic")


def test_scopes_add_up() -> None:
    scopes: list[Scope] = [("b", [1]), ("a", None), ("b", [0, 1])]
    assert expand(scopes, {"a": 2, "b": 9}) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(AdminError, match="There is no topic c"):
        expand([("c", None)], {"a": 2})
    with pytest.raises(AdminError, match="no partition 2; it has 0 to 1"):
        expand([("a", [0, 2])], {"a": 2})
