"""Tests the high watermark: the requests that complete and wake when it advances, or fail."""

from functools import partial

from barnabas.node.partitions.watermark import Watermark
from barnabas.storage.log import LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch


class Reader:
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_retired(self) -> None:
        self.events.append("retired")

    def on_progress(self) -> None:
        self.events.append("progress")

    def on_committed(self) -> None:
        self.events.append("committed")


def watermark(stored: int = 0) -> tuple[Watermark, Reader, Reader, list[str]]:
    """Return the watermark of a log with three records, a consumer, a follower, and requests."""
    log = open_log(MemoryDisk(), "data/orders/0", LogSettings(), root="data").log
    append(log, make_batch(3))
    made, consumer, follower = Watermark(log, stored), Reader(), Reader()
    made.watchers[consumer] = made.followers[follower] = None
    answers: list[str] = []
    for offset in (1, 3):
        safe, cancelled = f"{offset} is safe", f"{offset} is cancelled"
        made.when_safe(offset, partial(answers.append, safe), partial(answers.append, cancelled))
    return made, consumer, follower, answers


def test_a_stored_high_watermark_is_within_the_log() -> None:
    assert [watermark(stored)[0].high for stored in (0, 2, 9)] == [0, 2, 3]


def test_it_answers_the_requests_that_it_passes_and_wakes_readers() -> None:
    made, consumer, follower, answers = watermark()
    made.advance(2)
    assert (made.high, answers) == (2, ["1 is safe"])
    assert (consumer.events, follower.events) == (["progress"], ["committed"])


def test_it_does_not_move_back() -> None:
    made, consumer, _, _ = watermark(stored=2)
    made.advance(1)
    assert (made.high, consumer.events) == (2, [])


def test_a_request_that_is_safe_already_is_answered_at_once() -> None:
    made, _, _, answers = watermark(stored=1)
    assert (made.high, answers) == (1, ["1 is safe"])


def test_when_another_broker_leads_requests_are_cancelled_and_readers_stay() -> None:
    made, consumer, follower, answers = watermark()
    made.cancel_waiting()
    assert answers == ["1 is cancelled", "3 is cancelled"]
    assert consumer.events == follower.events == ["progress"]
    made.advance(3)
    assert answers == ["1 is cancelled", "3 is cancelled"]
    assert consumer.events == ["progress", "progress"]


def test_when_the_topic_is_deleted_readers_go_too() -> None:
    made, consumer, follower, answers = watermark()
    made.close()
    assert answers == ["1 is cancelled", "3 is cancelled"]
    assert consumer.events == follower.events == ["retired"]
    assert not made.watchers
    assert not made.followers
