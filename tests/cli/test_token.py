"""`barnabas token`, and commands whose client has a token."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.admin import token_admin
from barnabas.admin.token_admin import Token
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import LinkError
from tests.support.security.sasl_broker import SaslBroker
from tests.support.security.token_clients import (
    ROOT,
    add_user,
    as_user,
    java_file,
    token_properties,
    token_security,
)

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    with SaslBroker(security=token_security(tmp_path_factory.mktemp("secret"))) as running:
        for name in ("alice", "bob", ROOT):
            add_user(running.bootstrap, name)
        yield running


class Shell:
    """Runs commands as a user."""

    def __init__(self, broker: SaslBroker, file: Path) -> None:
        self._variables = {
            "BARNABAS_BOOTSTRAP": broker.bootstrap,
            "BARNABAS_CLIENT_CONFIG": str(file),
        }

    def run(self, *words: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "barnabas.cli", *words],
            capture_output=True,
            text=True,
            env={**os.environ, **self._variables},
            check=False,
        )

    def ids(self, *words: str) -> list[str]:
        found = json.loads(self.run("token", "list", "--json", *words).stdout)
        return [token["token_id"] for token in found]


@pytest.fixture
def alice(broker: SaslBroker, tmp_path: Path) -> Shell:
    return Shell(broker, java_file(tmp_path, "alice", "alice"))


@pytest.fixture
def bob(broker: SaslBroker, tmp_path: Path) -> Shell:
    return Shell(broker, java_file(tmp_path, "bob", "bob"))


def made_by(broker: SaslBroker, name: str, lifetime_ms: int = -1) -> Token:
    with as_user(broker.bootstrap, name) as wire:
        return token_admin.create(wire, None, (), lifetime_ms)


def test_the_life_of_a_token(broker: SaslBroker, alice: Shell, bob: Shell, tmp_path: Path) -> None:
    done = alice.run("token", "create", "--renewer", "User:bob", "--max-lifetime", "2h", "--json")
    made = json.loads(done.stdout)
    token_id, hmac = made["token_id"], made["hmac"]
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])
    assert made["ends_ms"] - made["issued_ms"] == 7_200_000
    listed = alice.run("token", "list").stdout + alice.run("token", "list", "--json").stdout
    assert (token_id in listed, hmac in listed) == (True, False)
    assert token_id in bob.ids("--owner", "User:alice")
    renewed = bob.run("token", "renew", token_id, "--period", "10m")
    assert (renewed.returncode, f"Token {token_id} is valid until" in renewed.stdout) == (0, True)
    holder = Shell(broker, java_file(tmp_path, token_id, hmac, token=True))
    refused = holder.run("token", "list")
    assert (refused.returncode, "with a password or a certificate" in refused.stderr) == (1, True)
    expired = alice.run("token", "expire", token_id)
    assert (expired.returncode, expired.stdout) == (0, f"Token {token_id} has expired\n")
    assert token_id not in alice.ids()
    assert "refused the login" in holder.run("token", "list").stderr


def test_create_shows_the_hmac_to_people(alice: Shell) -> None:
    done = alice.run("token", "create")
    assert (done.returncode, "HMAC: " in done.stdout) == (0, True)
    assert "User:alice, valid until 20" in done.stdout


def test_expire_later(broker: SaslBroker, alice: Shell) -> None:
    token_id = made_by(broker, "alice").token_id
    done = alice.run("token", "expire", token_id, "--after", "1h", "--json")
    said = json.loads(done.stdout)
    assert said["token_id"] == token_id
    with as_user(broker.bootstrap, "alice") as wire:
        found = {token.token_id: token.expires_ms for token in token_admin.tokens(wire)}
    assert found[token_id] == said["expires_ms"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "--owner", "User:bob"), "create-tokens user:User:OWNER"),
        (("create", "--owner", "bob"), "is not a principal"),
        (("create", "--renewer", "Role:x"), "write User:alice"),
        (("create", "--max-lifetime", "long"), "--max-lifetime 'long' is not a duration"),
        (("renew", "AAAAAAAAAAAAAAAAAAAAAA"), "barnabas token list"),
        (("expire", "AAAAAAAAAAAAAAAAAAAAAA"), "barnabas token list"),
    ],
)
def test_mistakes(alice: Shell, words: tuple[str, ...], said: str) -> None:
    done = alice.run("token", *words)
    assert (done.returncode, said in done.stderr, done.stdout) == (1, True, ""), done.stderr


def test_the_session_of_a_token_ends_when_it_expires(broker: SaslBroker) -> None:
    """The link is served for as long as the token is valid, and the next login is refused."""
    token = made_by(broker, "alice", 3_000)
    given = token_properties(broker.bootstrap, token)
    with Wire(given) as wire:
        wire.metadata()

    def is_refused() -> bool:
        try:
            with Wire(given) as late:
                late.metadata()
        except LinkError:
            return True
        return False

    eventually(is_refused)
    assert time.time() * 1000 >= token.expires_ms


def test_commands_that_use_librdkafka_say_that_they_take_no_token(
    broker: SaslBroker, tmp_path: Path
) -> None:
    token = made_by(broker, "alice")
    holder = Shell(broker, java_file(tmp_path, token.token_id, token.password, token=True))
    done = holder.run("consume", "orders", "--until", "end")
    assert (done.returncode, "delegation token" in done.stderr) == (1, True)


def test_acls_of_tokens_and_users(broker: SaslBroker, bob: Shell, tmp_path: Path) -> None:
    token = made_by(broker, "alice")
    admin = Shell(broker, java_file(tmp_path, ROOT, ROOT))
    assert token.token_id not in bob.ids()
    for operation, resource in (
        ("describe", f"token:{token.token_id}"),
        ("create-tokens,describe-tokens", "user:User:alice"),
    ):
        added = admin.run("acl", "add", "User:bob", operation, resource)
        assert added.returncode == 0, added.stderr
    assert token.token_id in bob.ids()
    assert bob.run("token", "create", "--owner", "User:alice").returncode == 0
    listed = admin.run("acl", "list").stdout
    assert f"token:{token.token_id}" in listed
    assert "user:User:alice" in listed


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    security = token_security(tmp_path)
    with SaslBroker(tmp_path / "data", security=security) as broker:
        add_user(broker.bootstrap, "alice")
        token = made_by(broker, "alice")
    with (
        SaslBroker(tmp_path / "data", security=security) as broker,
        Wire(token_properties(broker.bootstrap, token)) as wire,
    ):
        assert wire.nodes()
