"""Lists of ten thousand rows: the document holds the rows in view, and keys walk through them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browsers import Open
from web.mock.server import MockConsole, Settings

ROWS_IN_VIEW_MAX = 120


@pytest.fixture(scope="module")
def long_console() -> Iterator[MockConsole]:
    console = MockConsole(Settings(rows=10_000)).start()
    yield console
    console.close()


def rows(page: Any) -> int:
    return int(page.locator("tbody tr[data-row]").count())


@pytest.mark.parametrize(
    ("path", "last"),
    [("/topics?sort=name", "10,000 topics"), ("/groups?sort=name", "10,000 groups")],
)
def test_only_the_rows_in_view_are_in_the_document(
    long_console: MockConsole, open_page: Open, path: str, last: str
) -> None:
    page = open_page(long_console.url + path)
    page.get_by_text(last, exact=True).wait_for()
    assert 10 < rows(page) < ROWS_IN_VIEW_MAX
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.locator("tr[data-row='9999'] a").wait_for()
    assert (
        page.locator("tr[data-row='9999'] a")
        .inner_text()
        .startswith("webhooks" if "topics" in path else "warehouse")
    )
    assert rows(page) < ROWS_IN_VIEW_MAX


def test_a_search_narrows_ten_thousand_rows(long_console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{long_console.url}/topics")
    page.get_by_text("10,000 topics", exact=True).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("tenant-00077")
    page.get_by_text("1 topic", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("10,000 topics", exact=True).wait_for()


def test_j_and_k_walk_through_rows_beyond_the_view(
    long_console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{long_console.url}/topics?sort=name")
    page.locator("tr[data-row='0'] a").wait_for()
    for _ in range(60):
        page.keyboard.press("j")
    page.keyboard.press("k")
    row = page.locator("tr[data-row='58']:focus-within")
    row.wait_for()
    name = row.locator(".name").get_attribute("title")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=name, level=1).wait_for()


def test_back_returns_to_the_row(long_console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{long_console.url}/topics?sort=name")
    page.get_by_text("10,000 topics", exact=True).wait_for()
    page.evaluate("window.scrollTo(0, 32 * 5000)")
    page.locator("tr[data-row='5005'] a").click()
    page.get_by_role("heading", level=1).wait_for()
    page.go_back()
    page.locator("tr[data-row='5005'] a").wait_for()
    assert page.evaluate("window.scrollY") == 32 * 5000
