"""`barnabas quota`, as a user types it, against a broker."""

import json
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from barnabas.admin.access.quota_admin import entity_from, parse_quota
from barnabas.admin.admin_errors import AdminError

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def user() -> str:
    """A user that has no quota."""
    return f"user-{uuid4().hex}"


def listed(run: Run, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("quota", "list", "--json", *words).stdout)
    return found


def test_set_list_remove(run: Run, user: str) -> None:
    done = run("quota", "set", "--user", user, "producer_byte_rate=1MB", "request_percentage=12.5%")
    assert b"producer_byte_rate: no limit -> 1048576" in done.stdout
    run("quota", "set", "--user", user, "--client-id", "*default*", "consumer_byte_rate=2KB")
    assert listed(run, "--user", user) == [
        {
            "entity": {"user": user},
            "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5},
        },
        {
            "entity": {"client-id": "*default*", "user": user},
            "quotas": {"consumer_byte_rate": 2048.0},
        },
    ]
    table = run("quota", "list", "--user", user).stdout.decode()
    assert f"user {user}, client-id *default*" in table
    removed = run("quota", "remove", "--user", user, "request_percentage")
    assert b"request_percentage: 12.5 -> no limit" in removed.stdout
    assert listed(run, "--user", user)[0]["quotas"] == {"producer_byte_rate": 1048576.0}


def test_a_dry_run_changes_nothing(run: Run, user: str) -> None:
    done = run("quota", "set", "--user", user, "producer_byte_rate=5", "--dry-run", "--json")
    assert json.loads(done.stdout) == {
        "entity": {"user": user},
        "before": {},
        "after": {"producer_byte_rate": 5.0},
        "dry_run": True,
    }
    assert listed(run, "--user", user) == []


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["set", "producer_byte_rate=1"], b"--user, --client-id, both, or --ip"),
        (["set", "--user", "u", "speed=1"], b"write KEY=VALUE with one of"),
        (["set", "--user", "u", "producer_byte_rate=fast"], b"such as 1MB"),
        (["set", "--user", "u", "--ip", "10.0.0.1", "request_percentage=5"], b"cannot have"),
        (["set", "--ip", "10.0.0.1", "producer_byte_rate=5"], b"connection_creation_rate"),
        (["remove", "--user", "nobody"], b"user nobody has no quota"),
    ],
)
def test_mistakes_say_what_to_write(run: Run, words: list[str], advice: bytes) -> None:
    failed = run("quota", *words, code=1)
    assert advice in failed.stderr


def test_quotas_of_addresses(run: Run) -> None:
    words = ["--ip", "203.0.113.9"]
    try:
        run("quota", "set", *words, "connection_creation_rate=5")
        (found,) = listed(run, *words)
        assert found["quotas"] == {"connection_creation_rate": 5.0}
    finally:
        run("quota", "remove", *words)
    assert listed(run, *words) == []


def test_what_options_mean() -> None:
    assert entity_from("*default*", "c", None).names == {"user": None, "client-id": "c"}
    assert parse_quota("controller_mutation_rate=0.5") == ("controller_mutation_rate", 0.5)
    for wrong in ("producer_byte_rate=0", "request_percentage=nan", "request_percentage=-1"):
        with pytest.raises(AdminError, match="above 0"):
            parse_quota(wrong)
