"""Every test asserts something, itself or through a helper, so that every test can fail."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
TEST_FILES = [path for path in FILES if path.name.startswith("test_")]
ASSERTING = {
    "pytest.raises",
    "pytest.warns",
    "pytest.fail",
    "eventually",
    "assertDataFrameEqual",
    "run_state_machine_as_test",
}
"""Calls of libraries, and of `barnabas.testing`, that fail by themselves."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions_in(path: Path) -> dict[str, list[Function]]:
    """Return the functions and methods of a file by their names."""
    found: defaultdict[str, list[Function]] = defaultdict(list)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            found[node.name].append(node)
    return found


@cache
def helpers(path: Path) -> dict[str, list[Function]]:
    """Return what a file can call by name: its own functions, and those imported from `tests`."""
    found = dict(functions_in(path))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            module = TESTS.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            known = functions_in(module) if module.exists() else {}
            for alias in node.names:
                imported = known.get(alias.name, ())
                found[alias.asname or alias.name] = [*found.get(alias.name, ()), *imported]
    return found


def can_fail(function: Function, path: Path, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a function asserts, or calls a function of the tests that does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ASSERTING:
            return True
    known = helpers(path)
    for name in called_by(function):
        if name not in seen and any(can_fail(f, path, seen | {name}) for f in known.get(name, ())):
            return True
    return False


def called_by(function: Function) -> Iterator[str]:
    """Return the names of the functions and methods that a function calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_can_fail(path: Path) -> None:
    idle = [
        f"{path.relative_to(TESTS)}:{function.lineno} {name} asserts nothing"
        for name, found in functions_in(path).items()
        if name.startswith("test_")
        for function in found
        if not can_fail(function, path)
    ]
    assert idle == []
