"""Tests subscriptions to metrics of clients on the command line."""

import json
import subprocess
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_a_subscription_is_made_changed_shown_and_deleted(run: Run) -> None:
    run("config", "set", "client-metrics", "all", "metrics=*", "match=client_id=app.*")
    run("config", "set", "client-metrics", "all", "interval.ms=10000", "--unset", "match")
    assert json.loads(run("config", "subscriptions", "--json").stdout) == [
        {"name": "all", "metrics": "*", "interval.ms": "10000", "match": ""}
    ]
    assert run("config", "subscriptions").stdout.split()[4:] == [b"all", b"*", b"10000"]
    changed = run("config", "get", "client-metrics", "all", "--changed").stdout.split()
    assert changed[3:] == [
        b"metrics",
        b"*",
        b"subscription",
        b"interval.ms",
        b"10000",
        b"subscription",
    ]
    refused = run("config", "set", "client-metrics", "all", "interval.ms=5", code=1).stderr
    assert b"from 100 to 3600000" in refused
    run("config", "set", "client-metrics", "all", "--unset", "metrics", "--unset", "interval.ms")
    assert json.loads(run("config", "subscriptions", "--json").stdout) == []
