"""Tests `barnabas txn`, as a user types it, against a broker."""

import json
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.admin.scopes import Place
from barnabas.admin.transaction_admin import OpenTransaction, Transactions
from barnabas.wire.cluster_wire import Wire

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]

PATIENCE_S = 60.0
TIMEOUT_MS = 300_000


@pytest.fixture
def name(txn_support: None) -> str:
    """A new transactional id."""
    return f"x-{uuid4().hex}"


@pytest.fixture
def producer(name: str, bootstrap: str) -> Producer:
    """A producer that may begin a transaction."""
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": TIMEOUT_MS,
            "log_level": 0,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


@pytest.fixture
def opened(producer: Producer, topic: str) -> str:
    """A topic whose partition 0 has two records of an open transaction, from offset 0 on."""
    producer.begin_transaction()
    for value in ("a", "b"):
        producer.produce(topic, value=value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return topic


def read_json(done: subprocess.CompletedProcess[bytes]) -> Any:
    return json.loads(done.stdout)


def committed_records(run: Run, topic: str) -> list[str]:
    return run("consume", topic, "--until", "end").stdout.decode().split()


def open_on(bootstrap: str, place: Place) -> list[OpenTransaction]:
    with Wire({"bootstrap.servers": bootstrap}) as wire:
        return Transactions(wire).open_on([place])


def test_list_knows_states(run: Run, name: str, opened: str) -> None:
    def states(*words: str) -> dict[str, str]:
        listed = read_json(run("txn", "list", *words, "--json"))
        return {each["transactional_id"]: each["state"] for each in listed}

    assert states()[name] == "Ongoing"
    assert states("--state", "ongoing")[name] == "Ongoing"
    assert name not in states("--state", "Empty", "--state", "CompleteCommit")
    assert name.encode() in run("txn", "list").stdout
    run("txn", "list", "--state", "nope", code=2)


def test_describe_shows_what_is_open(run: Run, name: str, opened: str, producer: Producer) -> None:
    found = read_json(run("txn", "describe", name, "--json"))
    assert found["state"] == "Ongoing"
    assert found["timeout_ms"] == TIMEOUT_MS
    assert found["started_ms"] > 0
    assert found["partitions"] == [{"topic": opened, "partition": 0}]
    shown = run("txn", "describe", name).stdout.decode()
    assert f"{opened}:0" in shown
    assert "timeout 5m" in shown
    producer.commit_transaction(PATIENCE_S)
    found = read_json(run("txn", "describe", name, "--json"))
    assert found["partitions"] == []
    assert found["started_ms"] is None


def test_an_unknown_id_is_one_sentence(run: Run, name: str) -> None:
    for command in ("describe", "abort"):
        done = run("txn", command, name, code=1)
        assert f"No coordinator knows the transactional id {name}".encode() in done.stderr


def test_abort_by_id_fences_the_producer(
    run: Run, name: str, opened: str, producer: Producer
) -> None:
    assert b"1 partition" in run("txn", "abort", name).stdout
    assert committed_records(run, opened) == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_S)
    found = read_json(run("txn", "describe", name, "--json"))
    assert found["timeout_ms"] == TIMEOUT_MS
    assert found["partitions"] == []
    assert b"no open transaction" in run("txn", "abort", name, code=1).stderr


def test_abort_on_a_partition_lets_readers_continue(run: Run, opened: str, bootstrap: str) -> None:
    run("produce", opened, "-p", "0", stdin=b"after\n")
    assert committed_records(run, opened) == []
    (found,) = open_on(bootstrap, (opened, 0))
    assert found.start_offset == 0
    abort = ("txn", "abort", f"{opened}:0", "--start-offset")
    assert b"open transactions begin at 0" in run(*abort, "1", code=1).stderr
    run(*abort, "0")
    assert open_on(bootstrap, (opened, 0)) == []
    assert committed_records(run, opened) == ["after"]
    assert b"no transaction is open there" in run(*abort, "0", code=1).stderr


def test_abort_says_what_a_partition_is(run: Run, opened: str) -> None:
    for target in (opened, f"{opened}:0-1", f"{opened}:"):
        done = run("txn", "abort", target, "--start-offset", "0", code=1)
        assert b"orders:0" in done.stderr
    done = run("txn", "abort", f"{opened}:9", "--start-offset", "0", code=1)
    assert b"There is no partition" in done.stderr


def test_a_transaction_within_its_timeout_does_not_hang(run: Run, opened: str) -> None:
    hanging = ("txn", "hanging", "--topic", opened, "--older-than", "1s")
    assert read_json(run(*hanging, "--json")) == []
    assert b"No hanging transactions" in run(*hanging).stdout
    assert opened not in run("txn", "hanging").stdout.decode()
    done = run("txn", "hanging", "--topic", f"{opened}:5", code=1)
    assert b"has no partition 5" in done.stderr


def test_tls_on_a_plaintext_listener_is_explained(run: Run) -> None:
    done = run("txn", "list", "-X", "security.protocol=ssl", code=1)
    assert b"security.protocol" in done.stderr
