"""Every page shows its content, fits on a phone, and can be reloaded and shared by its address."""

import re
from typing import Any

import pytest

from tests.support.browsers import PAGES, MakeConsole, Open
from web.mock.server import MockConsole

BEYOND_THE_EDGE = """() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? ["the page itself"] : [];
    const isCut = each => {
        for (let up = each.parentElement; up && up !== document.body; up = up.parentElement)
            if (getComputedStyle(up).overflowX !== "visible") return true;
        return false;
    };
    const shown = [...document.querySelectorAll("main *")].filter(each => each.checkVisibility());
    const beyond = shown.filter(each => each.getBoundingClientRect().right > innerWidth + 1);
    const found = beyond.filter(each => !isCut(each)).map(each => each.outerHTML.slice(0, 80));
    return wide.concat(found);
}"""
"""What reaches beyond the right edge, but for what scrolls or is cut in a place of its own."""

CUT_IN_TWO = """() => [...document.querySelectorAll(".line > span")].filter(each => {
    const [own, line] = [each, each.parentElement].map(one => one.getBoundingClientRect());
    return own.top < line.bottom - 1 && own.right > line.right + 1;
}).map(each => each.textContent)"""
"""Facts in the second line of a row of which only the beginning is seen."""


def heading(page: Any) -> str:
    return str(page.locator("h1").inner_text()).strip()


@pytest.mark.parametrize("width", [1440, 390])
def test_each_page_shows_its_content_and_fits(
    console: MockConsole, open_page: Open, width: int
) -> None:
    page = open_page(console.url + "/", viewport={"width": width, "height": 844})
    for path, (title, text) in PAGES.items():
        page.goto(console.url + path)
        page.get_by_text(re.compile(re.escape(text), re.IGNORECASE)).first.wait_for(
            state="attached"
        )
        assert heading(page) == title
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} pixels wide"
        assert page.evaluate(CUT_IN_TWO) == [], path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scale"),
    [(720, 2), (640, 2), (320, 4)],
    ids=["1440 at 200 %", "1280 at 200 %", "1280 at 400 %"],
)
def test_a_zoomed_page_needs_no_scrolling_to_the_side(
    console: MockConsole, open_page: Open, width: int, scale: int
) -> None:
    """A zoomed browser has fewer pixels of CSS, each of which is larger."""
    page = open_page(
        console.url + "/", viewport={"width": width, "height": 450}, device_scale_factor=scale
    )
    beyond: dict[str, list[str]] = {}
    for path, (_, text) in PAGES.items():
        page.goto(console.url + path)
        page.get_by_text(re.compile(re.escape(text), re.IGNORECASE)).first.wait_for(
            state="attached"
        )
        if found := page.evaluate(BEYOND_THE_EDGE):
            beyond[path] = found
    assert beyond == {}
    page.goto(console.url + "/topics")
    page.get_by_role("button", name="Create a topic").click()
    page.get_by_label("Replication factor").fill("2")
    page.get_by_role("button", name="Preview").scroll_into_view_if_needed()
    assert page.get_by_role("button", name="Preview").is_visible()


def test_a_base_path_is_kept_in_links_and_addresses(
    make_console: MakeConsole, open_page: Open
) -> None:
    console = make_console(base_path="/tools/kafka")
    page = open_page(f"{console.url}/topics")
    page.get_by_role("link", name="payments", exact=True).click()
    page.wait_for_url("**/tools/kafka/topics/payments")
    page.reload()
    page.get_by_role("heading", name="payments", level=1).wait_for()


def test_back_forward_and_reload_keep_search_and_sort(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/topics")
    page.get_by_role("searchbox", name="Search topics").fill("gpu")
    page.get_by_text("3 topics", exact=True).wait_for()
    page.get_by_role("button", name="Size").click()
    page.wait_for_url("**/topics?search=gpu&sort=-size_bytes")
    largest = page.locator("tbody tr").first.get_by_text("gpu-silver")
    largest.wait_for()
    page.get_by_role("link", name="gpu-gold").click()
    page.get_by_role("heading", name="gpu-gold", level=1).wait_for()
    page.go_back()
    page.get_by_text("3 topics", exact=True).wait_for()
    page.reload()
    page.get_by_text("3 topics", exact=True).wait_for()
    assert page.get_by_role("searchbox").input_value() == "gpu"
    largest.wait_for()
    page.go_forward()
    page.get_by_role("heading", name="gpu-gold", level=1).wait_for()


def test_an_empty_cluster_says_what_to_type(make_console: MakeConsole, open_page: Open) -> None:
    console = make_console(empty=True)
    page = open_page(f"{console.url}/topics")
    page.get_by_text("barnabas topic create orders").wait_for()
    page.goto(f"{console.url}/groups")
    page.get_by_text("There are no groups yet").wait_for()
    page.goto(f"{console.url}/alerts")
    page.get_by_text("Nothing is wrong").wait_for()


def test_what_is_not_there_is_said(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics/absent/partitions")
    page.get_by_text("There is no topic absent").wait_for()


def test_zero_unknown_and_exact_numbers_differ(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/brokers")
    row = page.get_by_role("row", name=re.compile("Broker 3")).first
    row.get_by_text("fenced").wait_for()
    assert row.locator("[title=unknown]").count() >= 3
    page.goto(f"{console.url}/topics?search=returns")
    page.locator(".zero[title='0 bytes']").first.wait_for()
    page.goto(f"{console.url}/topics?search=shipments")
    assert re.fullmatch(
        r"[\d,]+ bytes", page.locator("[title$=' bytes']").first.get_attribute("title")
    )


def test_a_lost_console_is_said_calmly_and_old_data_is_marked(
    make_console: MakeConsole, open_page: Open
) -> None:
    console = make_console(interval_s=0.2)
    page = open_page(f"{console.url}/topics")
    page.get_by_role("link", name="payments", exact=True).wait_for()
    console.closing.set()
    page.route("**/api/events", lambda route: route.abort())
    page.get_by_text("No connection to the console since").wait_for()
    page.get_by_text(re.compile("^stale, ")).wait_for()
    assert page.get_by_role("link", name="payments", exact=True).is_visible()


def test_data_is_refreshed_in_place(make_console: MakeConsole, open_page: Open) -> None:
    console = make_console(interval_s=0.3)
    page = open_page(f"{console.url}/topics")
    page.get_by_role("link", name="orders", exact=True).focus()
    answers = []
    page.on("response", lambda found: answers.append(found.url))
    with page.expect_response("**/api/topics?*"), page.expect_response("**/api/topics?*"):
        pass
    assert page.evaluate("document.activeElement.textContent") == "orders"
