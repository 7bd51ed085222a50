"""Work in pieces: bounded in each event, and stopped where the client has gone."""

from barnabas.model.pieces import Work, in_pieces
from barnabas.model.timers import Timers


def counting(limit: int, done: list[int]) -> Work[int]:
    """Count up to a limit, one unit a step."""
    for number in range(limit):
        done.append(number)
        yield 1
    return limit


def failing() -> Work[int]:
    """Do one unit, then fail."""
    yield 1
    raise ValueError("broken")


def next_event(timers: Timers) -> None:
    """Have the next moment come."""
    timers.now_ms += 1
    timers.fire()


def test_each_event_does_one_piece() -> None:
    """The first piece is done at once, the next ones in events of their own."""
    timers, done, results = Timers(), list[int](), list[int]()
    in_pieces(timers, counting(7, done), 3).when_done(results.append)
    sizes = [len(done)]
    while not results:
        next_event(timers)
        sizes.append(len(done))
    assert sizes == [3, 6, 7]
    assert results == [7]


def test_little_work_is_done_at_once() -> None:
    """What fits into one piece needs no second event."""
    timers = Timers()
    assert in_pieces(timers, counting(2, []), 3).done
    assert timers.next_ms is None


def test_work_stops_when_the_client_is_gone() -> None:
    """An abandoned answer costs no more work."""
    timers, done = Timers(), list[int]()
    in_pieces(timers, counting(100, done), 3).abandon()
    next_event(timers)
    assert len(done) == 3
    assert timers.next_ms is None


def test_a_failure_reaches_the_client() -> None:
    """An exception in a later piece is the answer's failure."""
    timers, results, failures = Timers(), list[int](), list[str]()
    answer = in_pieces(timers, failing(), 1)
    answer.when_done(results.append, lambda error: failures.append(str(error)))
    next_event(timers)
    assert (results, failures) == ([], ["broken"])
