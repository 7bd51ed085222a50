"""Tests the page's files: caching, compression, the base path, and that no path leads outside."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.console.web.page_files import PageFiles
from tests.support.console.made_states import FakeWatcher, make_state
from tests.support.console.running_console import RunningConsole


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "static"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text('<!doctype html><base href="/"><p>page')
    (built / "assets" / "main-AbCd1234.js").write_text("let a = 1")
    (built / "assets" / "main-AbCd1234.js.gz").write_bytes(b"gz")
    (built / "assets" / "main-AbCd1234.js.br").write_bytes(b"br")
    (built / "icon.svg").write_text("<svg/>")
    (tmp_path / "secret").write_text("secret")
    return built


@pytest.fixture
def console(folder: Path) -> Iterator[RunningConsole]:
    with RunningConsole(FakeWatcher(make_state()), files=PageFiles("", folder)) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/topics", "/topics/a%2Fb/messages", "/login", "/x/y/z"])
def test_every_page_path_answers_the_page(console: RunningConsole, path: str) -> None:
    answer = console.raw("GET", path)
    assert answer.text.endswith("<p>page")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


def test_hashed_files_are_kept_for_ever_and_others_asked_for_again(console: RunningConsole) -> None:
    script = console.raw("GET", "/assets/main-AbCd1234.js", headers={"Accept-Encoding": ""})
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"].startswith("text/javascript")
    icon = console.raw("GET", "/icon.svg")
    assert icon.headers["cache-control"] == "no-cache"
    again = console.raw("GET", "/icon.svg", headers={"If-None-Match": icon.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip, br", b"br"), ("gzip", b"gz"), ("br;q=0, gzip", b"gz"), ("", b"let a = 1")],
)
def test_the_best_encoding_is_sent(folder: Path, accepted: str, encoding: bytes) -> None:
    from starlette.requests import Request

    headers = [(b"accept-encoding", accepted.encode())]
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": headers})
    answer = PageFiles("", folder).answer(request, "/assets/main-AbCd1234.js")
    assert answer.body == encoding
    assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "path", ["/../secret", "/assets/../../secret", "/..%2fsecret", "/%2e%2e/secret", "//secret"]
)
def test_no_path_leads_out_of_the_folder(console: RunningConsole, path: str) -> None:
    answer = console.raw("GET", path)
    assert "secret" not in answer.text


def test_a_missing_file_is_not_the_page(console: RunningConsole) -> None:
    assert console.raw("GET", "/assets/old-12345678.js").status_code == 404


def test_a_base_path_is_written_into_the_page(folder: Path) -> None:
    files = PageFiles("/kafka", folder)
    watcher = FakeWatcher(make_state())
    with RunningConsole(watcher, files=files, base_path="/kafka") as console:
        assert '<base href="/kafka/">' in console.raw("GET", "/topics").text
        plain = {"Accept-Encoding": "identity"}
        assert console.raw("GET", "/assets/main-AbCd1234.js", headers=plain).status_code == 200


def test_without_a_build_the_page_says_what_to_run(tmp_path: Path) -> None:
    watcher = FakeWatcher(make_state())
    with RunningConsole(watcher, files=PageFiles("", tmp_path)) as console:
        assert "make web" in console.raw("GET", "/").text
