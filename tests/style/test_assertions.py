"""Checks that every test asserts something, itself or through a helper, so that it can fail."""

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

BROWSER_WAITS = {"wait_for", "wait_for_url", "wait_for_function"}
"""Methods of Playwright that fail at their timeout."""

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
    """Return the functions that a file can call: its own, and those imported from `tests`."""
    found = dict(functions_in(path))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            module = TESTS.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            known = functions_in(module) if module.exists() else {}
            for alias in node.names:
                imported = {alias.asname or alias.name: known.get(alias.name, [])}
                if alias.name not in known:  # a class: its methods can be called
                    imported = known
                for name, functions in imported.items():
                    found[name] = [*found.get(name, ()), *functions]
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
        if isinstance(node, ast.Attribute) and is_browser_wait(node, path):
            return True
    known = helpers(path)
    for name in called_by(function):
        if name not in seen and any(can_fail(f, path, seen | {name}) for f in known.get(name, ())):
            return True
    return False


def is_browser_wait(node: ast.Attribute, path: Path) -> bool:
    """Return whether a test of a page waits for something in it."""
    return "browser" in path.parts and node.attr in BROWSER_WAITS


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
