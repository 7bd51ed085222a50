"""Changes: what would happen is shown first, and a read-only console changes nothing."""

import re
from typing import Any

from tests.support.browsers import MakeConsole, Open
from web.mock.server import MockConsole


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_topic_is_created_after_a_dry_run(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics")
    press(page, "Create a topic")
    page.get_by_label("Name").fill("returns.v2")
    page.get_by_label("Settings").fill("retention.ms=1000\ncleanup.policy=delete")
    press(page, "Preview")
    page.get_by_text("The cluster accepts returns.v2").wait_for()
    assert console.settings.changes == []
    press(page, "Create")
    page.wait_for_url("**/topics/returns.v2/partitions")
    [(method, path, body)] = console.settings.changes
    assert (method, path, body["partitions"]) == ("POST", "topics", 6)
    assert body["configs"] == {"retention.ms": "1000", "cleanup.policy": "delete"}


def test_another_input_makes_a_preview_old(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics?create=1")
    page.get_by_label("Name").fill("a")
    press(page, "Preview")
    page.get_by_role("button", name="Create", exact=True).wait_for()
    page.get_by_label("Name").fill("ab")
    page.get_by_role("button", name="Preview", exact=True).wait_for()


def test_what_the_server_refuses_is_said_in_the_dialog(
    console: MockConsole, open_page: Open
) -> None:
    page = open_page(f"{console.url}/topics?create=1")
    page.get_by_label("Name").fill("orders")
    press(page, "Preview")
    page.get_by_role("alert").get_by_text("Topic orders exists already").wait_for()


def test_offsets_are_reset_after_a_dry_run(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/groups/fraud-check")
    page.get_by_role("button", name=re.compile("Reset offsets")).wait_for()
    page.goto(f"{console.url}/groups?status=stopped")
    page.locator("tbody a.row-link").first.click()
    press(page, "Reset offsets")
    press(page, "Preview")
    page.get_by_role("columnheader", name="Before").wait_for()
    assert console.settings.changes == []
    page.locator("dialog").get_by_role("button", name="Reset offsets").click()
    page.get_by_text(re.compile(r"offsets? of .+ changed")).wait_for()
    assert console.settings.changes[0][2]["to"] == "beginning"


def test_a_group_with_members_is_not_reset(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/groups/billing")
    button = page.get_by_role("button", name="Reset offsets")
    assert button.get_attribute("aria-disabled") == "true"
    assert "Stop them first" in button.get_attribute("title")
    button.click(force=True)
    assert page.locator("dialog").count() == 0


def test_deleting_a_topic_asks_for_its_name(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics/orders/partitions")
    press(page, "Delete")
    button = page.get_by_role("button", name="Delete the topic")
    assert button.is_disabled()
    page.get_by_label("Type the name of the topic").fill("orders")
    button.click()
    page.wait_for_url("**/topics")
    page.get_by_text("39 topics").wait_for()


def test_a_message_is_produced_and_another_replayed(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/messages?topic=orders")
    page.locator("tbody a.row-link").first.click()
    press(page, "Replay")
    page.locator("dialog").get_by_role("button", name="Replay").click()
    page.get_by_text("Written to orders-2 at offset 81,204,117").wait_for()
    press(page, "Produce a message")
    page.get_by_label("Key", exact=True).fill("c-1")
    page.get_by_label("Value", exact=True).fill("{}")
    page.get_by_role("textbox", name="Headers").fill("trace=a=b")
    page.locator("dialog").get_by_role("button", name="Produce").click()
    page.get_by_role("dialog").wait_for(state="detached")
    (_, replay, _), (_, produce, body) = console.settings.changes
    assert (replay, produce) == ("messages/replay", "messages")
    assert (body["key"], body["value"], body["headers"]) == (
        "c-1",
        "{}",
        [{"name": "trace", "value": "a=b"}],
    )


def test_a_plan_is_a_picture_before_it_runs(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/plans")
    press(page, "Show the plan")
    page.get_by_role("img", name=re.compile("from broker 3 to broker 2")).wait_for()
    assert console.settings.changes == []
    press(page, "Run the plan")
    page.locator("dialog").get_by_role("button", name="Begin to move").click()
    page.get_by_text("12 partitions begin to move").wait_for()
    assert console.settings.changes[0][:2] == ("POST", "plans/balance")


def test_a_setting_is_changed_after_a_dry_run(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics/orders/settings")
    press(page, "retention.ms")
    page.get_by_label("Value").fill("1000")
    press(page, "Preview")
    page.get_by_text("86400000 → 1000").wait_for()
    press(page, "Change")
    page.get_by_text("retention.ms of orders is changed").wait_for()
    assert console.settings.changes[0][2]["set"] == {"retention.ms": "1000"}


def test_a_read_only_console_offers_no_change(make_console: MakeConsole, open_page: Open) -> None:
    console = make_console(read_only=True)
    page = open_page(f"{console.url}/topics/orders/partitions")
    page.get_by_text("read-only", exact=True).wait_for()
    for name in ("Produce", "Add partitions", "Delete records", "Delete"):
        button = page.get_by_role("button", name=name, exact=True)
        assert button.get_attribute("aria-disabled") == "true"
        assert "--read-write" in button.get_attribute("title")
    page.goto(f"{console.url}/topics?create=1")
    page.wait_for_url("**/topics")
    assert page.locator("dialog").count() == 0


def test_changes_carry_the_token_of_the_session(console: MockConsole, open_page: Open) -> None:
    page = open_page(f"{console.url}/topics?create=1")
    page.get_by_label("Name").fill("fresh")
    with page.expect_request("**/api/topics") as asked:
        press(page, "Preview")
    assert asked.value.headers["x-csrf-token"] == "mock-token"
    refused = page.evaluate(
        "fetch('/api/topics', {method: 'POST', body: '{}'}).then(found => found.status)"
    )
    assert refused == 403


def test_login_comes_back_to_the_page_and_logout_leaves_it(
    make_console: MakeConsole, open_page: Open
) -> None:
    console = make_console(login=True)
    page = open_page(f"{console.url}/groups?status=stopped")
    page.get_by_label("User").fill("anna")
    page.get_by_label("Password").fill("wrong")
    press(page, "Log in")
    page.get_by_role("alert").get_by_text("User or password is wrong").wait_for()
    page.get_by_label("Password").fill("secret")
    press(page, "Log in")
    page.get_by_role("link", name="search-index").or_(
        page.locator("tbody a.row-link").first
    ).first.wait_for()
    assert page.url.endswith("/groups?status=stopped")
    press(page, "Log out")
    page.get_by_label("Password").wait_for()


def test_login_leads_to_no_other_site(make_console: MakeConsole, open_page: Open) -> None:
    console = make_console(login=True)
    page = open_page(f"{console.url}/login?next=//other.example/")
    page.get_by_label("User").fill("anna")
    page.get_by_label("Password").fill("secret")
    press(page, "Log in")
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    assert page.url == f"{console.url}/"
