"""Tests start-up: the modules that a command loads, and its errors."""

import subprocess
import sys

import pytest

from barnabas.wire.addresses import split_address
from barnabas.wire.wire_failures import LinkError

HEAVY = ("confluent_kafka", "rich", "typer", "barnabas.cli.topic_command")


def barnabas(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_serve_loads_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys; from barnabas.cli.main import main\n"
        "try: main(['serve', '--print-config'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_help_lists_every_command() -> None:
    done = barnabas("--help")
    assert done.returncode == 0
    for name in ("serve", "topic", "config", "produce", "consume", "group", "txn", "log", "bench"):
        assert name in done.stdout
    for name in ("cluster", "partition"):
        assert name in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        *[("cluster", name) for name in ("up", "status", "health", "add", "remove")],
        *[("cluster", name) for name in ("promote", "demote")],
        *[("partition", name) for name in ("reassign", "balance", "elect")],
        *[("topic", name) for name in ("create", "list", "describe", "alter", "delete")],
        *[("config", name) for name in ("get", "set")],
        ("produce",),
        ("consume",),
        *[("group", name) for name in ("list", "describe", "reset", "delete")],
        *[("txn", name) for name in ("list", "describe", "abort", "hanging")],
        *[("log", name) for name in ("dump", "verify")],
        *[("sql", name) for name in ("run", "status")],
        *[("bench", name) for name in ("produce", "consume", "latency")],
    ],
)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    done = barnabas(*words, "--help")
    assert done.returncode == 0
    assert "Example: " in done.stdout


def test_an_unreachable_broker_is_one_sentence() -> None:
    done = barnabas("topic", "list", "--bootstrap", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: No broker answered at 127.0.0.1:1; "
        "start one with `barnabas serve` or pass --bootstrap\n"
    )


def test_commands_and_options_complete() -> None:
    environment = {
        "_BARNABAS_COMPLETE": "complete_bash",
        "COMP_WORDS": "barnabas topic de",
        "COMP_CWORD": "2",
    }
    assert barnabas(env=environment).stdout.split() == ["describe", "delete"]


def test_topic_names_are_not_completed_without_a_broker() -> None:
    environment = {
        "_BARNABAS_COMPLETE": "complete_bash",
        "COMP_WORDS": "barnabas consume or",
        "COMP_CWORD": "2",
        "BARNABAS_BOOTSTRAP": "127.0.0.1:1",
    }
    done = barnabas(env=environment)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("localhost", ("localhost", 9092)),
        (":9093", ("127.0.0.1", 9093)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::1]", ("::1", 9092)),
        ("SSL://kafka.example:9094", ("kafka.example", 9094)),
    ],
)
def test_addresses(address: str, place: tuple[str, int]) -> None:
    assert split_address(address) == place


@pytest.mark.parametrize("address", ["a:b", "a:0", "a:65536", "a:"])
def test_bad_addresses(address: str) -> None:
    with pytest.raises(LinkError, match="HOST:PORT"):
        split_address(address)
