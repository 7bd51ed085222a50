"""Tests what the console refuses: other sites, missing tokens, read-only sessions, wrong logins."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.console.console_settings import ConsoleSettings, LoginMethod, clean_base_path
from barnabas.console.login import password_file
from barnabas.console.login.login_attempts import FAILURES_MAX, WINDOW_S, LoginAttempts
from barnabas.console.login.password_file import PasswordFile, new_user, put_user
from barnabas.console.login.session_routes import Logins, own_path
from barnabas.console.login.sessions import (
    AGE_S,
    IDLE_S,
    SESSIONS_A_USER_MAX,
    SESSIONS_MAX,
    Session,
    Sessions,
)
from tests.support.console.made_states import FakeWatcher, make_state
from tests.support.console.running_console import RunningConsole

PASSWORD = "correct horse"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RunningConsole]:
    with RunningConsole(FakeWatcher(make_state()), audit=tmp_path / "audit") as running:
        yield running


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A password file, with passwords that take less time to check than those of real users."""
    monkeypatch.setattr(password_file, "COST", 16)
    path = tmp_path / "users"
    put_user(path, new_user("alice", PASSWORD, read_only=False))
    put_user(path, new_user("bob", PASSWORD, read_only=True))
    return path


@pytest.fixture
def guarded(users: Path, tmp_path: Path) -> Iterator[RunningConsole]:
    """A console with a login, whose failures do not wait."""
    logins = Logins(passwords=PasswordFile(users), delay_s=0)
    with RunningConsole(
        FakeWatcher(make_state()),
        logins=logins,
        login=LoginMethod.PASSWORD,
        passwords=users,
        audit=tmp_path / "audit",
    ) as running:
        yield running


def audit_lines(console: RunningConsole) -> list[dict[str, object]]:
    assert console.settings.audit is not None
    return [json.loads(line) for line in console.settings.audit.read_text().splitlines()]


def log_in(console: RunningConsole, user: str, password: str = PASSWORD) -> httpx.Response:
    body = {"user": user, "password": password}
    return console.raw("POST", "/api/login", json=body, headers=console.headers())


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "", "127.0.0.1.nip.io", "["])
def test_a_host_that_is_not_ours_is_refused(console: RunningConsole, host: str) -> None:
    answer = console.raw("GET", "/api/overview", headers={"Host": host})
    assert answer.status_code in {400, 403}
    assert "cluster_id" not in answer.text
    assert console.raw("GET", "/", headers={"Host": host}).status_code in {400, 403}


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1", "[::1]:8080"])
def test_names_and_addresses_of_this_computer_are_taken(console: RunningConsole, host: str) -> None:
    assert console.raw("GET", "/api/overview", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"X-CSRF-Token": None},
        {"X-CSRF-Token": "guess"},
        {"X-CSRF-Token": "ü"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_change_that_the_page_did_not_send_is_refused(
    console: RunningConsole, change: dict[str, str | None]
) -> None:
    headers = {**console.headers(), **change}
    encoded = {k: v.encode() for k, v in headers.items() if v is not None}
    answer = console.raw("POST", "/api/topics", json={"name": "x"}, headers=encoded)
    assert answer.status_code == 403
    assert answer.json()["code"] in {"cross_site", "csrf"}


def test_another_site_cannot_make_a_browser_read(console: RunningConsole) -> None:
    answer = console.raw("GET", "/api/topics", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.json()["code"] == "cross_site"
    page = console.raw("GET", "/topics", headers={"Sec-Fetch-Site": "cross-site"})
    assert page.status_code == 200  # a link to the console may be anywhere


def test_every_answer_carries_the_headers_that_browsers_obey(console: RunningConsole) -> None:
    for path in ("/", "/api/overview", "/api/none", "/assets/none.js"):
        headers = console.raw("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe-inline" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers
    assert console.raw("GET", "/api/overview").headers["cache-control"] == "no-store"


def test_a_read_only_console_refuses_changes_and_writes_them_down(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    with RunningConsole(FakeWatcher(make_state()), read_only=True, audit=audit) as console:
        assert console.get("/api/session")["read_only"] is True
        for method, path in (
            ("POST", "/api/topics"),
            ("POST", "/api/topics/orders/configs"),
            ("POST", "/api/topics/orders/partitions"),
            ("POST", "/api/topics/orders/trim"),
            ("DELETE", "/api/topics/orders"),
            ("POST", "/api/groups/billing/reset"),
            ("DELETE", "/api/groups/billing"),
            ("POST", "/api/messages"),
            ("POST", "/api/messages/replay"),
            ("POST", "/api/plans/balance"),
            ("POST", "/api/plans/reassign"),
            ("POST", "/api/plans/elect"),
            ("POST", "/api/plans/cancel"),
        ):
            found = console.send(method, path, {"name": "secret-value"}, status=403)
            assert found["code"] == "read_only"
        lines = audit_lines(console)
        assert stat.S_IMODE(audit.stat().st_mode) == 0o600
    assert len(lines) == 13
    assert {line["result"] for line in lines} == {"refused"}
    assert {line["action"] for line in lines} >= {"topic.delete", "group.reset", "plan.cancel"}
    assert "orders" in {line["target"] for line in lines}


def test_an_api_without_a_login_says_so_and_shows_nothing(guarded: RunningConsole) -> None:
    session = guarded.get("/api/session")
    assert session["login"] == {"required": True, "methods": ["password"]}
    assert (session["user"], session["version"]) == (None, None)
    assert session["cluster"]["bootstrap"] is None
    for path in ("overview", "topics", "events", "messages?topic=orders", "telemetry/report"):
        assert guarded.raw("GET", f"/api/{path}").status_code == 401
    guarded.post("/api/topics", {"name": "x"}, status=401)
    assert audit_lines(guarded)[-1]["result"] == "refused"


def test_a_login_gives_a_strict_cookie_and_a_logout_ends_it(guarded: RunningConsole) -> None:
    answer = log_in(guarded, "alice")
    assert answer.status_code == 200
    assert answer.json()["user"] == "alice"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert guarded.get("/api/overview")["cluster_id"] == "abc"
    assert guarded.get("/api/session")["csrf"] == answer.json()["csrf"]
    kept = dict(guarded.http.cookies)
    guarded.post("/api/logout")
    guarded.http.cookies.update(kept)
    assert guarded.raw("GET", "/api/overview").status_code == 401


def test_a_user_may_be_read_only_though_the_console_is_not(guarded: RunningConsole) -> None:
    assert log_in(guarded, "bob").json()["read_only"] is True
    assert guarded.post("/api/topics", {"name": "x"}, status=403)["code"] == "read_only"


def test_wrong_passwords_and_unknown_users_get_the_same_answer(guarded: RunningConsole) -> None:
    wrong, unknown = log_in(guarded, "alice", "wrong"), log_in(guarded, "nobody-here", PASSWORD)
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() == unknown.json()
    assert "set-cookie" not in wrong.headers
    text = guarded.settings.audit.read_text() if guarded.settings.audit else ""
    assert "wrong" not in text
    assert PASSWORD not in text


def test_many_wrong_passwords_close_the_door_for_this_user(guarded: RunningConsole) -> None:
    for _ in range(FAILURES_MAX):
        assert log_in(guarded, "alice", "wrong").status_code == 401
    assert log_in(guarded, "alice").status_code == 429
    assert log_in(guarded, "bob").status_code == 200


def test_a_login_needs_the_token_and_the_origin(guarded: RunningConsole) -> None:
    body = {"user": "alice", "password": PASSWORD}
    bare = guarded.raw("POST", "/api/login", json=body, headers={"Origin": guarded.origin})
    assert bare.json()["code"] == "csrf"
    foreign = {**guarded.headers(), "Origin": "https://evil.example"}
    assert guarded.raw("POST", "/api/login", json=body, headers=foreign).status_code == 403


def test_attempts_are_allowed_again_after_a_while() -> None:
    now = [0.0]
    attempts = LoginAttempts(lambda: now[0])
    for _ in range(FAILURES_MAX):
        attempts.failed(("alice", "here"))
    assert not attempts.may_try(("alice", "here"))
    assert attempts.may_try(("alice", "there"))
    now[0] = WINDOW_S + 1
    assert attempts.may_try(("alice", "here"))


def test_sessions_end_by_idleness_and_by_age() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    key = sessions.open(Session(user="alice", read_only=True))
    used = 0.0
    while used < AGE_S:
        assert sessions.find(key) is not None
        used = now[0] = now[0] + IDLE_S - 1
    now[0] = AGE_S + 1
    assert sessions.find(key) is None
    other = sessions.open(Session(user="alice", read_only=True))
    now[0] += IDLE_S + 1
    assert sessions.find(other) is None


def test_sessions_are_bounded_in_all_and_for_a_user() -> None:
    sessions = Sessions(lambda: 0.0)
    first = sessions.open(Session(user="alice", read_only=True))
    for _ in range(SESSIONS_A_USER_MAX):
        sessions.open(Session(user="alice", read_only=True))
    assert sessions.find(first) is None
    assert len(sessions) == SESSIONS_A_USER_MAX
    for number in range(2 * SESSIONS_MAX):
        sessions.open(Session(user=f"user-{number}", read_only=True))
    assert len(sessions) == SESSIONS_MAX


def test_a_body_that_is_too_large_or_no_json_is_refused(console: RunningConsole) -> None:
    headers = {**console.headers(), "Content-Type": "application/json"}
    large = b'{"name": "' + b"x" * (5 << 20) + b'"}'
    assert console.raw("POST", "/api/topics", content=large, headers=headers).status_code == 413
    deep = b"[" * 100_000
    assert console.raw("POST", "/api/topics", content=deep, headers=headers).status_code == 400
    form = {**console.headers(), "Content-Type": "application/x-www-form-urlencoded"}
    assert console.raw("POST", "/api/topics", content=b"name=x", headers=form).status_code == 400


def test_only_the_owner_can_read_the_password_file(users: Path) -> None:
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert PASSWORD not in users.read_text()


def test_a_changed_password_counts_at_the_next_login(users: Path) -> None:
    known = PasswordFile(users)
    assert known.check("alice", PASSWORD) is not None
    put_user(users, new_user("alice", "another password", read_only=False))
    assert known.check("alice", PASSWORD) is None
    assert known.check("alice", "another password") is not None
    assert users.read_text().count("alice:") == 1


@pytest.mark.parametrize(
    "line", ["alice:plain", "alice:scrypt$1$x$1$a$b", "::", "a:scrypt$9999999999$8$1$AA==$AA=="]
)
def test_a_line_that_is_no_user_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users"
    path.write_text(f"# users\n{line}\n")
    with pytest.raises(AdminError, match="line 2"):
        PasswordFile(path)


@pytest.mark.parametrize(("name", "password"), [("", PASSWORD), ("a:b", PASSWORD), ("a", "short")])
def test_names_and_passwords_that_cannot_work_are_refused(name: str, password: str) -> None:
    with pytest.raises(AdminError):
        new_user(name, password, read_only=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/topics/a?x=1", "/topics/a?x=1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_only_to_own_paths(text: str, path: str) -> None:
    assert own_path(text) == path


def test_changes_without_a_login_beyond_this_computer_are_refused() -> None:
    with pytest.raises(AdminError, match="--login password"):
        ConsoleSettings(bootstrap="b:1", host="0.0.0.0", read_only=False).require_safe()
    ConsoleSettings(bootstrap="b:1", host="0.0.0.0", read_only=True).require_safe()
    ConsoleSettings(bootstrap="b:1", host="::1", read_only=False).require_safe()


@pytest.mark.parametrize("text", ["/a b", "/../x", "/<x>", "/a//b", '/"'])
def test_a_base_path_with_other_characters_is_refused(text: str) -> None:
    with pytest.raises(AdminError, match="--base-path"):
        clean_base_path(text)


def test_a_base_path_and_a_public_url_work_behind_a_proxy() -> None:
    url = "https://tools.example/kafka"
    watcher = FakeWatcher(make_state())
    with RunningConsole(watcher, base_path="/kafka", public_url=url) as console:
        assert console.get("/api/overview")["cluster_id"] == "abc"
        headers = {"Host": "tools.example", "Origin": "https://tools.example"}
        token = console.get("/api/session")["csrf"]
        sent = {**headers, "X-CSRF-Token": token}
        answer = console.raw("POST", "/api/plans/balance", json=[], headers=sent)
        assert answer.json()["code"] == "bad_input"
        assert "strict-transport-security" in console.raw("GET", "/").headers
