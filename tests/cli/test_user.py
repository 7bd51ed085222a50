"""`barnabas user`, and every other command with a file of client properties."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.security.sasl_broker import ADMIN, ADMIN_PASSWORD, SaslBroker

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    with SaslBroker() as running:
        yield running


@pytest.fixture
def properties(broker: SaslBroker, tmp_path: Path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={broker.bootstrap}\n"
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username={ADMIN}\n"
        f"sasl.password={ADMIN_PASSWORD}\n"
    )
    return file


class Shell:
    """Runs commands with a file of properties."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def run(self, *words: str, **variables: str) -> Done:
        environment = {**os.environ, "BARNABAS_CLIENT_CONFIG": str(self.file), **variables}
        return subprocess.run(
            [sys.executable, "-m", "barnabas.cli", *words],
            capture_output=True,
            text=True,
            env=environment,
            input="",
            check=False,
        )

    def users(self) -> dict[str, list[str]]:
        found = json.loads(self.run("user", "list", "--json").stdout)
        return {user["name"]: user["mechanisms"] for user in found}


@pytest.fixture
def shell(properties: Path) -> Shell:
    return Shell(properties)


def as_user(shell: Shell, user: str, password: str) -> Done:
    return shell.run(
        "topic", "list", "-X", f"sasl.username={user}", "-X", f"sasl.password={password}"
    )


def test_the_life_of_a_user(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("alice's first, =\n")
    created = shell.run("user", "create", "alice", "--password-file", str(file))
    assert (created.returncode, created.stdout) == (0, "Created user alice\n")
    assert shell.users() == {
        "admin": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
        "alice": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    }
    assert as_user(shell, "alice", "alice's first, =").returncode == 0
    changed = shell.run("user", "password", "alice", BARNABAS_USER_PASSWORD="second")
    assert (changed.returncode, changed.stdout) == (0, "Changed the password of user alice\n")
    assert as_user(shell, "alice", "second").returncode == 0
    refused = as_user(shell, "alice", "alice's first, =")
    assert (refused.returncode, "refused the login of user 'alice'" in refused.stderr) == (1, True)
    assert "first" not in refused.stderr
    assert shell.run("user", "delete", "alice").stdout == "Deleted user alice\n"
    assert shell.users() == {"admin": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}
    assert as_user(shell, "alice", "second").returncode == 1


def test_one_mechanism(shell: Shell) -> None:
    words = ("user", "create", "bob", "--mechanism", "scram-sha-256", "--iterations", "8192")
    assert shell.run(*words, BARNABAS_USER_PASSWORD="bob's").returncode == 0
    assert shell.users()["bob"] == ["SCRAM-SHA-256"]
    shell.run("user", "password", "bob", BARNABAS_USER_PASSWORD="another")
    assert shell.users()["bob"] == ["SCRAM-SHA-256"]
    shell.run("user", "delete", "bob")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "admin"), "There is a user admin"),
        (("delete", "nobody"), "There is no user nobody"),
        (("password", "nobody"), "There is no user nobody"),
        (("create", "eve"), "There is no terminal"),
        (("create", "eve", "--mechanism", "PLAIN"), "no mechanism PLAIN"),
        (("create", "eve", "--password-file", "/none"), "/none"),
    ],
)
def test_mistakes(shell: Shell, words: tuple[str, ...], said: str) -> None:
    done = shell.run("user", *words)
    assert (done.returncode, said in done.stderr) == (1, True)
    assert "Traceback" not in done.stderr


def test_an_empty_password(shell: Shell) -> None:
    done = shell.run("user", "create", "eve", BARNABAS_USER_PASSWORD="")
    assert (done.returncode, "is empty" in done.stderr) == (1, True)


def test_a_command_with_a_config_of_its_own(shell: Shell) -> None:
    words = ("topic", "create", "orders", "--config", "retention.ms=1000")
    assert shell.run(*words, "--client-config", str(shell.file)).returncode == 0
    assert "orders" in shell.run("topic", "list").stdout


def test_other_commands(shell: Shell, broker: SaslBroker, properties: Path) -> None:
    shell.file = Path()
    environment = {"BARNABAS_CLIENT_CONFIG": ""}
    done = shell.run("cluster", "status", "--config", str(properties), **environment)
    assert (done.returncode, "healthy" in done.stdout) == (0, True)
    done = shell.run("topic", "list", "-b", broker.bootstrap, **environment)
    assert (done.returncode, "set security.protocol and sasl.mechanism" in done.stderr) == (1, True)
    other = ("-b", "127.0.0.1:1", "--config", str(properties))
    done = shell.run("topic", "list", *other, **environment)
    assert (done.returncode, "127.0.0.1:1" in done.stderr) == (1, True)


def test_a_file_that_is_not_there(shell: Shell) -> None:
    shell.file = Path("/none.properties")
    done = shell.run("topic", "list")
    assert (done.returncode, "Error: /none.properties" in done.stderr) == (1, True)
