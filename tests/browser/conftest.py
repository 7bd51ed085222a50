"""A browser, and consoles over a made-up cluster."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.browsers import CHROMIUM, NO_BROWSER, TIMEOUT_MS, MakeConsole, Open
from web.mock.server import MockConsole, Settings

playwright_api = pytest.importorskip("playwright.sync_api", reason="install the extra `browser`")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    # For a module only: while playwright runs, its event loop counts as running in this thread.
    with playwright_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def make_console() -> Iterator[MakeConsole]:
    with ExitStack() as stack:

        def make(**settings: Any) -> MockConsole:
            console = MockConsole(Settings(**settings)).start()
            stack.callback(console.close)
            return console

        yield make


@pytest.fixture
def console(make_console: MakeConsole) -> MockConsole:
    return make_console()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open an address in a fresh browser profile; what the page complains about fails the test."""
    complaints: list[str] = []
    with ExitStack() as stack:

        def open_at(url: str, **options: Any) -> Any:
            context = browser.new_context(
                **({"viewport": {"width": 1280, "height": 800}} | options)
            )
            stack.callback(context.close)
            context.set_default_timeout(TIMEOUT_MS)
            page = context.new_page()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda said: complaints.extend(_complaint(said)))
            page.goto(url)
            return page

        yield open_at
    assert complaints == []


def _complaint(said: Any) -> list[str]:
    # The browser tells of each refused request; what the page makes of it is what counts.
    is_answer = said.text.startswith("Failed to load resource")
    return [said.text] if said.type in ("error", "warning") and not is_answer else []
