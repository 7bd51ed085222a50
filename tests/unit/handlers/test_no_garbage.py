"""Tests that requests create no reference cycles: collecting them would stop the event loop."""

import gc

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.markers import Markers
from tests.support.talk.requests import batch, create_topic, fetch_request, produce
from tests.support.talk.transaction_requests import (
    end,
    find_coordinator,
    in_transaction,
    initialize,
    send_end,
    send_produce_in,
)

ROUNDS = 100


def test_a_fetch_that_waited_and_the_produce_that_woke_it_are_freed_at_once(
    talk: Dialogue,
) -> None:
    create_topic(talk, "a")
    for offset in range(ROUNDS // 10):
        exchange_once(talk, offset)
    gc.collect()
    gc.disable()
    try:
        for offset in range(ROUNDS // 10, ROUNDS):
            exchange_once(talk, offset)
        # A handful may come from the test's own tools; each request would leave dozens.
        assert gc.collect() < ROUNDS
    finally:
        gc.enable()


def exchange_once(talk: Dialogue, offset: int) -> None:
    exchange = talk.send(fetch_request("a", offset, max_wait_ms=500), 12)
    assert exchange.waiting
    produce(talk, "a", batch(1))
    assert not exchange.waiting


def test_a_transaction_is_freed_at_once(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    markers = Markers()
    monkeypatch.setattr("barnabas.node.coordination.marker_writing.write_marker", markers.write)
    create_topic(talk, "a")
    find_coordinator(talk)
    producer = initialize(talk)
    for _ in range(ROUNDS // 10):
        producer = transact(talk, markers, producer)
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS // 10, ROUNDS):
            producer = transact(talk, markers, producer)
        assert gc.collect() < ROUNDS
    finally:
        gc.enable()


def transact(talk: Dialogue, markers: Markers, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    """Run a transaction that the next one must wait for."""
    markers.hold = True
    exchange = send_produce_in(talk, [("a", 0, in_transaction(producer))])
    markers.release()
    talk.settle()
    assert not exchange.waiting
    after = end(talk, producer)
    repeated = send_end(talk, producer)
    assert repeated.waiting
    markers.release()
    talk.settle()
    assert repeated.answer.error_code == 0
    return after
