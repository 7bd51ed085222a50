"""Tests the choice of ports for brokers under test."""

import pytest

from barnabas.testing.free_ports import free_port

WORKERS = 4


def test_no_port_is_returned_twice() -> None:
    ports = [free_port() for _ in range(200)]
    assert len(set(ports)) == len(ports)


def test_workers_of_a_test_run_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(WORKERS))
    found = []
    for number in range(WORKERS):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        found.append({free_port() % WORKERS for _ in range(20)})
    assert all(len(remainders) == 1 for remainders in found)
    assert len(set.union(*found)) == WORKERS
