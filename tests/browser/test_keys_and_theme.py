"""The palette, the keys, the theme."""

import re

from tests.support.browsers import Open
from web.mock.server import MockConsole


def test_the_palette_finds_topics_groups_and_pages(console: MockConsole, open_page: Open) -> None:
    page = open_page(console.url + "/")
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("gpu-go")
    page.get_by_role("option", name=re.compile("gpu-gold.*topic")).wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="gpu-gold", level=1).wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("heat")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Heat map").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    page.get_by_role("combobox").wait_for(state="detached")


def test_the_palette_offers_nothing_of_an_earlier_text(
    console: MockConsole, open_page: Open
) -> None:
    """Enter would go there while the answer for the present text is on its way."""
    page = open_page(console.url + "/")
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("gpu")
    old, new = (page.get_by_role("option", name=name) for name in ("gpu-gold", "gpu-silver"))
    old.first.wait_for()
    new.first.wait_for()
    page.route("**/api/search?*", lambda route: route.abort())
    page.keyboard.type("-s")
    old.first.wait_for(state="detached")
    assert new.count() > 0


def test_keys_go_to_pages_and_are_listed(console: MockConsole, open_page: Open) -> None:
    page = open_page(console.url + "/")
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.get_by_role("heading", name="Topics").wait_for()
    page.keyboard.press("?")
    page.get_by_role("heading", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Keys").wait_for(state="detached")


def test_letters_in_a_field_are_letters(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics")
    page.get_by_role("searchbox").click()
    page.keyboard.type("gt?jk")
    page.get_by_text("No topic has this in its name").wait_for()
    assert page.url.endswith("/topics?search=gt%3Fjk")


def test_the_theme_follows_the_system_until_one_is_chosen(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(console.url + "/", color_scheme="dark")
    page.locator("html[data-theme=dark]").wait_for()
    page.get_by_role("button", name=re.compile("^Theme: as the system")).click()
    page.locator("html[data-theme=light]").wait_for()
    page.reload()
    page.get_by_role("button", name=re.compile("^Theme: light")).wait_for()
    page.locator("html[data-theme=light]").wait_for()


def test_the_menu_of_a_phone_opens_and_closes(console: MockConsole, open_page: Open) -> None:
    page = open_page(console.url + "/", viewport={"width": 390, "height": 844})
    page.get_by_role("button", name="Pages").click()
    page.get_by_role("link", name="Groups", exact=True).click()
    page.get_by_role("heading", name="Groups").wait_for()
    page.get_by_role("navigation", name="Pages").wait_for(state="hidden")


def test_reduced_motion_stops_animations(console: MockConsole, open_page: Open) -> None:
    page = open_page(console.url + "/", reduced_motion="reduce")
    page.get_by_role("heading", name="Overview").wait_for()
    assert page.evaluate("document.getAnimations().length") == 0
