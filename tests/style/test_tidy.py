"""House rules that no linter knows. Each rule says why in its message."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"
EDGE = {"server", "app.py", "cli", "client", "testing", "config", "logs.py"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
GENERATED = {"messages", "coordinator_records"}
FILES = sorted(p for p in SOURCE.rglob("*.py") if GENERATED.isdisjoint(p.parts))


def is_edge(path: Path) -> bool:
    return path.relative_to(SOURCE).parts[0] in EDGE


def problems(path: Path) -> Iterator[str]:
    text = path.read_text()
    if text.count("\n") > FILE_LINES_MAX:
        yield f"{path}: over {FILE_LINES_MAX} lines; split it along a noun"
    for node in ast.walk(ast.parse(text)):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                yield f"{where}: {node.name} does not fit on a screen"
        if isinstance(node, ast.AsyncFunctionDef | ast.Await) and not is_edge(path):
            yield f"{where}: async belongs to the edge; the core runs to completion"
        if isinstance(node, ast.Call) and not is_edge(path):
            called = ast.unparse(node.func)
            if called in {"open", "datetime.now", "hash", "id"}:
                yield f"{where}: {called}() is not the same in every run"
            if called.startswith("random.") and called != "random.Random":
                yield f"{where}: {called}() draws from a global source; take an rng"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_source_is_tidy(path: Path) -> None:
    assert list(problems(path)) == []
