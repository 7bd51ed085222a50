"""Tests a broker inside another program: a failed start and a stop leave that program unchanged."""

import gc
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.app import CannotStartError, lock_folder
from barnabas.client import Producer
from barnabas.model.errors import ConfigError, StorageError
from barnabas.testing import broker as broker_module


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Compare threads and the garbage collector's settings before and after each test."""
    threads, thresholds, frozen = set(threading.enumerate()), gc.get_threshold(), frozen_count()
    yield
    assert set(threading.enumerate()) <= threads
    assert gc.get_threshold() == thresholds
    assert frozen_count() == frozen


def bound_port(taken: socket.socket) -> int:
    taken.bind(("127.0.0.1", 0))
    return int(taken.getsockname()[1])


def frozen_count() -> int:
    return gc.get_freeze_count()


def is_free(folder: Path) -> bool:
    """Return whether a broker could use the folder."""
    lock_folder(folder).close()
    return True


def test_a_port_that_is_in_use(tmp_path: Path, taken: int) -> None:
    for _ in range(2):
        with pytest.raises(CannotStartError, match="the port is in use"):
            Broker(tmp_path, settings={"broker.port": taken}).start()
        assert is_free(tmp_path)
    with Broker(tmp_path) as broker, Producer(broker.bootstrap) as producer:
        producer.send("orders", "v")


def test_a_port_for_other_brokers_that_is_in_use(tmp_path: Path, taken: int) -> None:
    settings = {"cluster.voters": f"1@127.0.0.1:{taken}"}
    with pytest.raises(CannotStartError, match="the port is in use"):
        Broker(tmp_path, settings=settings).start()
    assert is_free(tmp_path)


def test_a_folder_that_another_broker_uses(tmp_path: Path) -> None:
    with Broker(tmp_path) as first:
        with pytest.raises(CannotStartError, match="another broker is using"):
            Broker(tmp_path).start()
        with Producer(first.bootstrap) as producer:
            producer.send("orders", "v")
    assert is_free(tmp_path)


def test_metadata_that_is_lost(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Producer(broker.bootstrap) as producer:
        producer.send("orders", "v")
    shutil.move(tmp_path / "__cluster_metadata", tmp_path / "elsewhere")
    broker = Broker(tmp_path)
    with pytest.raises(StorageError):
        broker.start()
    assert is_free(tmp_path)
    shutil.rmtree(tmp_path / "__cluster_metadata", ignore_errors=True)
    shutil.move(tmp_path / "elsewhere", tmp_path / "__cluster_metadata")
    with broker, Producer(broker.bootstrap) as producer:
        assert producer.send("orders", "v").offset == 1


def test_settings_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Broker(tmp_path, settings={"broker.no_such": 1}).start()


def test_a_start_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "START_PATIENCE_S", 0.5)
    with socket.socket() as own, socket.socket() as absent:  # the other voter never answers
        ports = [bound_port(each) for each in (own, absent)]
        own.close()
        voters = f"1@127.0.0.1:{ports[0]},2@127.0.0.1:{ports[1]}"
        with pytest.raises(TimeoutError):
            Broker(tmp_path, settings={"cluster.voters": voters}).start()
    assert is_free(tmp_path)


def test_a_temporary_folder_goes_away_with_a_failed_start(taken: int) -> None:
    broker = Broker(settings={"broker.port": taken})
    with pytest.raises(CannotStartError), broker:
        pass
    assert not broker.data.exists()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_brokers_that_stop_in_any_order(order: tuple[int, int]) -> None:
    brokers = [Broker().start(), Broker().start()]
    for number in order:
        brokers[number].stop()
        brokers[number].__exit__(None, None, None)
    assert not any(broker.data.exists() for broker in brokers)


def test_a_failed_start_beside_a_broker_that_runs(tmp_path: Path, taken: int) -> None:
    with Broker(tmp_path):
        seldom = gc.get_threshold()
        with pytest.raises(CannotStartError):
            Broker(settings={"broker.port": taken}).__enter__()
        assert gc.get_threshold() == seldom


@pytest.mark.parametrize("change", [lambda: None, lambda: gc.set_threshold(123, 4, 5)])
def test_thresholds_are_those_of_the_host_program(change: Callable[[], None]) -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(900, 11, 12)
        with Broker():
            assert gc.get_threshold() != (900, 11, 12)
            change()
            wanted = (123, 4, 5) if gc.get_threshold() == (123, 4, 5) else (900, 11, 12)
        assert gc.get_threshold() == wanted
    finally:
        gc.set_threshold(*before)


def test_what_the_host_program_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = frozen_count()
        with Broker():
            pass
        # Some frozen objects die meanwhile, by their reference counts; none are thawed.
        assert frozen_count() > frozen * 0.9
    finally:
        gc.unfreeze()
