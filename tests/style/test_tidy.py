"""Checks house rules that no linter knows. Each rule gives its reason in its message."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"
EDGE = {"server", "app.py", "cli", "client", "console", "testing", "config"}
EDGE |= {"logs.py", "log_limits.py"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
FOLDER_MODULES_MAX = 28
GENERATED = {"messages", "coordinator_records"}
SHARED_NAMES = {"errors.py", "fetch.py", "produce.py", "cluster_view.py"}
"""Errors of the broker and of the client, the codecs and the handlers of two APIs, and the view of
a cluster that a broker and a test have."""
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


def test_a_folder_fits_on_a_screen() -> None:
    counts = Counter(path.parent for path in FILES)
    large = {str(folder): count for folder, count in counts.items() if count > FOLDER_MODULES_MAX}
    assert large == {}, "divide it into sub-packages by idea"


def test_module_names_are_unique() -> None:
    """A reader finds a module by its name."""
    places = Counter(path.name for path in FILES if not path.name.startswith("__"))
    repeated = {name for name, count in places.items() if count > 1}
    assert repeated - SHARED_NAMES == set()


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_source_is_tidy(path: Path) -> None:
    assert list(problems(path)) == []
