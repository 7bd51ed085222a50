"""Tests messages while no broker is reachable; the command's tests cover brokers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.telemetry.collect.delivering import Delivery
from barnabas.telemetry.collect.spool import Letter, Spool
from barnabas.testing.free_ports import free_port


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path / "spool", 1 << 20)) as opened:
        yield opened


def settings(**more: object) -> dict[str, object]:
    return {"bootstrap.servers": f"127.0.0.1:{free_port()}", "log_level": 0, **more}


def letter(number: int, size: int = 10) -> Letter:
    return Letter("t", None if number % 2 else b"GPU-1", b"%*d" % (size, number), [("a", b"b")])


def test_where_memory_is_full_messages_go_to_disk_in_their_order(
    spool: Spool, tmp_path: Path
) -> None:
    said: list[str] = []
    given = settings(**{"queue.buffering.max.messages": 10})
    delivery = Delivery(given, spool=spool, tell=said.append, prepare=lambda: False)
    for number in range(50):
        delivery.queue(letter(number))
    assert spool.messages == 50
    assert len(said) == 1
    assert said[0].startswith(f"Keeping messages in {tmp_path / 'spool'} until a broker takes them")
    delivery.poll()
    delivery.give_up(0)
    with closing(Spool(tmp_path / "spool", 1 << 20)) as again:
        assert again.oldest() == [letter(number) for number in range(50)]


def test_what_waits_in_memory_at_the_end_goes_to_disk(spool: Spool) -> None:
    delivery = Delivery(settings(), spool=spool)
    for number in range(5):
        delivery.queue(letter(number))
    assert (delivery.waiting >= 5, spool.messages) == (True, 0)
    delivery.give_up(0)
    assert (spool.messages, delivery.account.unknown) == (5, 0)


def test_without_a_spool_it_is_counted(tmp_path: Path) -> None:
    given = settings(**{"queue.buffering.max.messages": 5})
    delivery = Delivery(given)
    delivery.is_stopping = lambda: True
    for number in range(7):
        delivery.queue(letter(number))
    delivery.give_up(0)
    assert delivery.account.unknown == 7


def test_a_message_that_no_broker_would_accept_is_lost_and_reported(spool: Spool) -> None:
    said: list[str] = []
    given = settings(**{"message.max.bytes": 2_000})
    delivery = Delivery(given, spool=spool, tell=said.append)
    delivery.queue(letter(1, size=5_000))
    assert (delivery.account.failed, spool.messages) == (1, 0)
    assert len(said) == 1
    assert said[0].endswith("Message size too large")
    delivery.give_up(0)
