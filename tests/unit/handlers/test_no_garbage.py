"""Requests leave no circles behind: collecting them would stop the loop for milliseconds."""

import gc

from barnabas.testing.dialogue import Dialogue
from barnabas.testing.requests import batch, create_topic, fetch_request, produce

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
