"""Tests the login as a user of the brokers: ACLs decide what the page may do."""

from collections.abc import Iterator

import httpx
import pytest

from barnabas.admin.access.users import set_password
from barnabas.admin.connecting import settings as client_settings
from barnabas.admin.topic_requests import create_topic
from barnabas.console.console_settings import LoginMethod
from barnabas.console.login.session_routes import Logins
from barnabas.model.security_settings import SecuritySettings
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.wire.cluster_wire import Wire
from tests.support.console.running_console import PATIENCE_S, RunningConsole
from tests.support.security.sasl_broker import ADMIN, ADMIN_PASSWORD, SaslBroker, properties

WATCH_S = 0.5
PASSWORD = "dora's secret, ="


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningConsole]:
    """A console of a broker with ACLs, where `dora` has no rights."""
    security = SecuritySettings(authorizer="acl", super_users=(f"User:{ADMIN}",))
    with SaslBroker(security=security) as broker:
        own = {key: str(value) for key, value in properties(broker.bootstrap).items()}
        with Wire(own) as wire:
            set_password(wire, "dora", PASSWORD, ("SCRAM-SHA-512",), 4096)
            create_topic(
                wire,
                "orders",
                partitions=1,
                replication_factor=1,
                configs={},
                validate_only=False,
            )
        given = tuple(f"{key}={value}" for key, value in own.items())
        watched = WatchSettings(
            properties=client_settings(broker.bootstrap, given), interval_s=WATCH_S
        )
        with Watcher(watched) as watcher:
            watcher.wait(PATIENCE_S)
            with RunningConsole(
                watcher,
                bootstrap=broker.bootstrap,
                properties=given,
                login=LoginMethod.BROKER,
                logins=Logins(delay_s=0),
            ) as running:
                yield running


def log_in(console: RunningConsole, user: str, password: str) -> httpx.Response:
    console.http.cookies.clear()
    body = {"user": user, "password": password}
    return console.raw("POST", "/api/login", json=body, headers=console.headers())


def test_a_wrong_password_is_refused(guarded: RunningConsole) -> None:
    assert log_in(guarded, ADMIN, "wrong").status_code == 401
    assert log_in(guarded, "nobody", ADMIN_PASSWORD).status_code == 401
    assert guarded.raw("GET", "/api/topics").status_code == 401


def test_an_admin_may_do_everything(guarded: RunningConsole) -> None:
    assert log_in(guarded, ADMIN, ADMIN_PASSWORD).json()["user"] == ADMIN
    place = guarded.post("/api/messages", {"topic": "orders", "value": "x", "partition": 0})
    assert place["offset"] >= 0
    assert guarded.get("/api/topics/orders/configs")["items"]


def test_a_user_sees_only_what_acls_let_it_describe(guarded: RunningConsole) -> None:
    log_in(guarded, ADMIN, ADMIN_PASSWORD)
    assert [each["name"] for each in guarded.get("/api/topics")["items"]] == ["orders"]
    assert guarded.get("/api/topics/orders")["name"] == "orders"
    log_in(guarded, "dora", PASSWORD)
    assert guarded.get("/api/topics")["items"] == []
    guarded.get("/api/topics/orders", 404)
    assert guarded.get("/api/overview")["counts"]["topics"] == 0
    assert guarded.get("/api/heatmap")["topics"] == []
    kinds = {each["kind"] for each in guarded.get("/api/search", q="orders")["items"]}
    assert "topic" not in kinds


def test_a_user_without_rights_acts_as_itself_and_is_refused(guarded: RunningConsole) -> None:
    assert log_in(guarded, "dora", PASSWORD).json()["user"] == "dora"
    body = {"topic": "orders", "value": "x", "partition": 0}
    assert guarded.post("/api/messages", body, 403)["code"] == "TOPIC_AUTHORIZATION_FAILED"
    guarded.get("/api/messages", 403, topic="orders")
    found = guarded.post("/api/topics", {"name": "new", "partitions": 1}, 403)
    assert found["code"] in {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}
    guarded.send("DELETE", "/api/topics/orders", {"confirm": "orders"}, 403)
