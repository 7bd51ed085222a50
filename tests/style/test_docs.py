"""Checks that documentation, docstrings and comments name only files that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASES = (ROOT, ROOT / "src" / "barnabas", ROOT / "src")
CODE = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"(?:[\w-]+/)*\w+\.py|(?:[\w-]+/)+(?=\W|$)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("src/**/*.md")])
GENERATED = {"messages", "coordinator_records"}
SOURCES = sorted(
    path
    for folder in ("src", "tests", "tools", "bench")
    for path in (ROOT / folder).rglob("*.py")
    if GENERATED.isdisjoint(path.parts)
)
NAMED = re.compile(r"`((?:\w+/)*\w+\.py)`")
PACKAGE = ROOT / "src" / "barnabas"
EXAMPLES = {"shop_functions.py"}
"""Files that a page invents for its examples."""


def named_modules(page: Path) -> Iterator[str]:
    """Return every `path.py` and `folder/` that the page writes as code."""
    for span in CODE.findall(page.read_text(encoding="utf-8")):
        if MODULE.fullmatch(span) and span not in EXAMPLES:
            yield span


def exists(name: str, page: Path) -> bool:
    if any((base / name).exists() for base in (page.parent, *BASES)):
        return True
    return "/" not in name and any(
        next((ROOT / folder).rglob(name), None) for folder in ("src", "tests", "tools", "bench")
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_a_page_names_exist(page: Path) -> None:
    assert [name for name in named_modules(page) if not exists(name, page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [each for each in targets if "://" not in each]
    assert [each for each in local if not (page.parent / each).exists()] == []


def is_near(name: str, source: Path) -> bool:
    """Tell whether a name is a path from the root or the package, or of a file near this one."""
    near = [base for base in source.parents if base.is_relative_to(ROOT)]
    if any((base / name).exists() for base in (ROOT, PACKAGE, *near)):
        return True
    return "/" not in name and next(source.parent.rglob(name), None) is not None


def test_modules_that_docstrings_and_comments_name_exist() -> None:
    stale = [
        f"{source.relative_to(ROOT)} names {name}"
        for source in SOURCES
        if source != Path(__file__)
        for name in NAMED.findall(source.read_text(encoding="utf-8"))
        if "NAME" not in name and not is_near(name, source)
    ]
    assert stale == []
