"""axe-core finds nothing against WCAG 2.2 AA, in both themes."""

from pathlib import Path

import pytest

from tests.support.browsers import PAGES, Open
from web.mock.server import MockConsole

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
MOST_USED = ("/", "/topics", "/groups/billing", "/messages?topic=orders", "/plans")
RUN = """async tags => {
    const found = await axe.run(document, {runOnly: tags});
    return found.violations.map(each => each.id + ": " + each.nodes[0].html);
}"""

pytestmark = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_most_used_pages_have_no_violations(
    console: MockConsole, open_page: Open, theme: str
) -> None:
    assert violations(console, open_page, theme, MOST_USED, 1440) == {}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_violations(
    console: MockConsole, open_page: Open, theme: str, width: int
) -> None:
    assert violations(console, open_page, theme, PAGES, width) == {}


def violations(
    console: MockConsole, open_page: Open, theme: str, paths: object, width: int
) -> dict[str, list[str]]:
    assert isinstance(paths, tuple | dict)
    page = open_page(
        console.url + "/", color_scheme=theme, viewport={"width": width, "height": 900}
    )
    found: dict[str, list[str]] = {}
    for path in paths:
        page.goto(console.url + path)
        page.get_by_text(PAGES[path][1]).first.wait_for(state="attached")
        page.evaluate(AXE.read_text())
        if here := page.evaluate(RUN, TAGS):
            found[path] = here
    return found
