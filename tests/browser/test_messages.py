"""The messages: search, filters, one in full, live tail, export."""

import json
import re
from typing import Any

from tests.support.browsers import Open
from web.mock.server import MockConsole

ROWS = "table[aria-label=Messages] tbody tr[data-row]"


def rows(page: Any) -> int:
    return int(page.locator(ROWS).count())


def test_the_newest_messages_of_all_partitions_come_first(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/topics/orders")
    page.get_by_text("54 messages").wait_for()
    times = page.locator(f"{ROWS} td:first-child").all_inner_texts()
    assert times == sorted(times, reverse=True)


def test_filters_are_in_the_address_and_can_be_shared(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/messages?topic=orders")
    field = page.get_by_label("Contains")
    field.fill("payment of order")
    field.press("Enter")
    page.wait_for_url("**/messages?topic=orders&text=payment+of+order")
    page.get_by_text(re.compile(r"^[\d,]+ messages of")).wait_for()
    found = rows(page)
    page.reload()
    page.get_by_text(re.compile(r"^[\d,]+ messages of")).wait_for()
    assert 0 < found == rows(page)
    page.get_by_role("button", name="Remove the filter Contains").click()
    page.get_by_text("54 messages").wait_for()


def test_a_filter_without_a_match_says_what_was_read(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/messages?topic=orders&key=absent&partitions=0")
    page.get_by_text("No message matches").wait_for()
    page.get_by_text(re.compile(r"The search read [\d,]+ messages")).wait_for()


def test_one_message_in_full_has_an_address(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/messages?topic=orders")
    page.locator("tbody a.row-link").first.click()
    page.get_by_role("complementary").get_by_text("traceparent").wait_for()
    address = page.url
    assert "open=" in address
    page.get_by_role("button", name="hex", exact=True).click()
    page.get_by_role("complementary").get_by_text(re.compile(r"^63 2d")).first.wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("complementary").wait_for(state="detached")
    page.goto(address)
    page.get_by_role("complementary").get_by_text("traceparent").wait_for()


def test_a_search_is_read_on_from_where_it_ended(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/messages?topic=orders&from=beginning")
    page.get_by_text("There are more.").wait_for()
    page.get_by_role("button", name="Read on").click()
    page.wait_for_url(re.compile(r"from=0%3A\d+"))
    page.get_by_text("There are more.").wait_for()


def test_a_live_tail_adds_messages_until_it_is_stopped(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/messages?topic=orders")
    page.get_by_role("button", name="Live tail").click()
    page.locator(ROWS).nth(4).wait_for()
    page.get_by_role("button", name="Stop the tail").click()
    page.get_by_text("54 messages").wait_for()
    assert "live" not in page.url


def test_a_live_tail_holds_still_while_one_message_is_read(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/messages?topic=orders&live=1")
    page.locator(f"{ROWS} a").first.click()
    button = page.get_by_role("button", name=re.compile(r"Show \d+ new"))
    button.wait_for()
    before = rows(page)
    button.click()
    page.locator(ROWS).nth(before).wait_for()


def test_messages_are_exported_as_lines_of_json(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/messages?topic=orders&from=beginning&partitions=0")
    page.get_by_text("There are more.").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSONL").click()
    lines = download.value.path().read_text().splitlines()
    assert json.loads(lines[0])["partition"] == 0
