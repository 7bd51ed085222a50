"""axe-core finds nothing against WCAG 2.2 AA, in both themes."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.browsers import PAGES, MakeConsole, Open
from web.mock.server import MockConsole

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
MOST_USED = ("/", "/topics", "/groups/billing", "/messages?topic=orders", "/plans")
OVERLAYS = (
    ("/topics", "Create a topic", "Replication factor"),
    ("/topics/orders/partitions", "Delete", "Type the name of the topic"),
    ("/topics/orders/partitions", "Produce", "Value"),
    ("/topics/orders/settings", "retention.ms", "Back to the default"),
    ("/plans", "Show the plan", "The plan"),
)
"""A page, a button of it, and a text of what it opens."""
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


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_opens_above_a_page_has_no_violations(
    make_console: MakeConsole, open_page: Open, theme: str, width: int
) -> None:
    console = make_console(login=True)
    page = open_page(
        console.url + "/", color_scheme=theme, viewport={"width": width, "height": 900}
    )
    page.get_by_label("Password").fill("secret")
    found = {"login": violations_here(page)}
    page.get_by_label("User").fill("anna")
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").wait_for()
    found["palette"] = violations_here(page)
    for path, button, text in OVERLAYS:
        page.goto(console.url + path)
        page.get_by_role("button", name=button, exact=True).click()
        page.get_by_text(text).first.wait_for()
        found[button] = violations_here(page)
    page.goto(f"{console.url}/messages?topic=orders")
    page.locator("tbody a.row-link").first.click()
    page.get_by_role("complementary").locator("pre").first.wait_for()
    found["message"] = violations_here(page)
    assert {name: here for name, here in found.items() if here} == {}


def violations_here(page: Any) -> list[str]:
    page.evaluate(AXE.read_text())
    found: list[str] = page.evaluate(RUN, TAGS)
    return found


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
        if here := violations_here(page):
            found[path] = here
    return found
