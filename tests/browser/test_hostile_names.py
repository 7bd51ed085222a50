"""Names and values that try to run scripts are shown as text."""

import urllib.parse
from typing import Any

from tests.support.browsers import MakeConsole, Open
from web.mock.cluster import HOSTILE


def is_hacked(page: Any) -> bool:
    return bool(page.evaluate("window.hacked !== undefined"))


def test_hostile_groups_are_text_and_have_addresses(
    make_console: MakeConsole, open_page: Open
) -> None:
    console = make_console(hostile=True)
    page = open_page(f"{console.url}/groups?sort=name")
    page.get_by_text("40 groups").wait_for()
    for name in HOSTILE:
        page.goto(f"{console.url}/groups/{urllib.parse.quote(name, safe='')}")
        heading = page.locator("h1 .name")
        heading.wait_for()
        assert heading.get_attribute("title") == name
        assert not is_hacked(page)


def test_hostile_keys_values_and_headers_are_text(
    make_console: MakeConsole, open_page: Open
) -> None:
    console = make_console(hostile=True)
    page = open_page(f"{console.url}/messages?topic=orders")
    page.get_by_text("<script>window.hacked=1</script>").first.wait_for()
    page.locator("tbody a.row-link").first.click()
    page.get_by_role("complementary").get_by_text("Headers").wait_for()
    assert not is_hacked(page)
    assert page.locator("main script, main img, aside script, aside img").count() == 0


def test_hostile_addresses_are_text(make_console: MakeConsole, open_page: Open) -> None:
    console = make_console()
    attack = urllib.parse.quote("<img src=x onerror=window.hacked=1>", safe="")
    page = open_page(f"{console.url}/topics?search={attack}")
    page.get_by_text("No topic has this in its name").wait_for()
    page.goto(f"{console.url}/{attack}")
    page.get_by_text("The console has no page at").wait_for()
    page.goto(f"{console.url}/messages?topic={attack}")
    page.get_by_role("alert").wait_for()
    assert not is_hacked(page)


def test_the_page_runs_no_inline_script(make_console: MakeConsole, open_page: Open) -> None:
    page = open_page(make_console().url + "/")
    page.get_by_role("heading", name="Overview").wait_for()
    assert page.locator("script:not([src])").count() == 0
    assert page.locator("style").count() == 0
    assert page.evaluate("document.querySelectorAll('[onclick],[onload],[onerror]').length") == 0
