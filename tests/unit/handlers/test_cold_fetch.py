"""Tests fetches of data from before a start: it is checked first, a little in each event."""

from pathlib import Path

import pytest

from barnabas.handlers.produce_fetch.fetch import CHECK_WAIT_MS
from barnabas.model.errors import ErrorCode
from barnabas.model.steps import EVENT_UNITS
from barnabas.protocol.records import batches
from barnabas.storage.trust import BATCH_UNITS, BLOCK_BYTES, FETCH_ALLOWANCE_BYTES
from tests.support.talk.batches import make_batch
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import create_topic, delete_topic, fetch, fetch_request

BY_NAME = 12
BATCH = bytes(make_batch([(None, b"")], timestamp=START_MS))
COUNT = (BLOCK_BYTES + 200_000) // len(BATCH)
"""The number of small batches that fill one block and a part of the next."""


def offsets_in(content: bytes | None) -> list[int]:
    """Return the offsets of batches of one record each."""
    return [header.base_offset for header, _ in batches(content or b"")]


def fill(talk: Dialogue, topic: str, count: int) -> None:
    create_topic(talk, topic)
    partition = talk.node.find(topic, 0)
    for _ in range(count):
        partition.leader.append(memoryview(bytearray(BATCH)), START_MS)
    talk.settle()


@pytest.fixture
def cold(tmp_path: Path) -> Dialogue:
    """Return a node that has just started on a log of very many small batches."""
    talk = Dialogue(tmp_path)
    fill(talk, "a", COUNT)
    talk.restart()
    talk.hold_scans = True
    return talk


def test_a_fetch_waits_while_what_it_wants_is_checked(cold: Dialogue) -> None:
    request = fetch_request("a", max_wait_ms=500, partition_max_bytes=1 << 24, max_bytes=1 << 24)
    exchange = cold.send(request, BY_NAME)
    events = 0
    while exchange.content is None:
        assert cold.scans
        events += 1
        cold.step_scan()
    ((result,),) = [t.partitions for t in exchange.answer.responses]
    offsets = offsets_in(result.records)
    assert offsets == list(range(len(offsets)))
    assert BLOCK_BYTES <= len(result.records) < BLOCK_BYTES + len(BATCH)
    assert events >= len(offsets) * BATCH_UNITS // EVENT_UNITS
    # The rest is checked by now, too, when the consumer fetches again.
    cold.release_scans()
    rest = fetch(cold, "a", len(offsets))
    assert offsets_in(rest.records) == list(range(len(offsets), COUNT))


def test_a_fetch_that_does_not_want_to_wait_waits_for_the_check_alone(cold: Dialogue) -> None:
    limits = {"max_wait_ms": 0, "min_bytes": 1 << 24}
    first, second = (cold.send(fetch_request("a", n, **limits), BY_NAME) for n in range(2))
    assert first.waiting
    assert second.waiting
    assert len(cold.scans) == 1  # one check at a time
    while first.content is None:
        cold.step_scan()
    for offset, exchange in enumerate((first, second)):
        ((result,),) = [t.partitions for t in exchange.answer.responses]
        assert offsets_in(result.records)[0] == offset


def test_a_check_that_takes_very_long_is_not_waited_for(cold: Dialogue) -> None:
    exchange = cold.send(fetch_request("a"), BY_NAME)
    cold.pass_time(CHECK_WAIT_MS)
    ((result,),) = [t.partitions for t in exchange.answer.responses]
    assert (result.error_code, result.high_watermark) == (0, COUNT)
    assert not result.records


def test_what_was_written_since_the_start_is_served_at_once(cold: Dialogue) -> None:
    cold.node.find("a", 0).leader.append(memoryview(bytearray(BATCH)), START_MS)
    cold.settle()
    assert offsets_in(fetch(cold, "a", COUNT).records) == [COUNT]
    assert not cold.scans


def test_a_deleted_topic_ends_the_check(cold: Dialogue) -> None:
    exchange = cold.send(fetch_request("a", max_wait_ms=500), BY_NAME)
    cold.step_scan()
    delete_topic(cold, "a")
    cold.release_scans()
    assert not exchange.waiting


@pytest.mark.parametrize("bad", [5_000, COUNT - 10])
def test_damage_is_reported_and_the_rest_is_served(cold: Dialogue, bad: int) -> None:
    with Path(cold.node.find("a", 0).log.active.file.path).open("r+b") as file:
        file.seek(bad * len(BATCH) + 65)
        file.write(b"\xff")
    cold.hold_scans = False
    assert offsets_in(fetch(cold, "a", 0).records)[0] == 0
    assert offsets_in(fetch(cold, "a", bad - 1).records) == [bad - 1]
    assert fetch(cold, "a", bad).error_code == ErrorCode.CORRUPT_MESSAGE
    assert offsets_in(fetch(cold, "a", bad + 1).records)[0] == bad + 1
    assert [n.event for n in cold.notices if n.level == "error"] == ["stored records are damaged"]


def test_small_logs_are_checked_at_once_up_to_an_allowance(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    each = FETCH_ALLOWANCE_BYTES // 3 // len(BATCH)
    for topic in "abcd":
        fill(talk, topic, each)
    talk.restart()
    talk.hold_scans = True
    topics = [fetch_request(topic).topics[0] for topic in "abcd"]
    request = fetch_request("a")
    request.topics = topics
    answer = talk.ask(request, BY_NAME)
    found = [len(offsets_in(t.partitions[0].records)) for t in answer.responses]
    assert found == [each, each, each, 0]
    talk.release_scans()
    assert len(offsets_in(fetch(talk, "d").records)) == each
