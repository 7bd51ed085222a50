"""The count of buffered bytes: which frame begins, which waits, and in which order."""

from collections import deque
from collections.abc import Callable

import pytest

from barnabas.server.buffered_memory import BufferedMemory

LIMIT = 100


class Turns:
    """Runs what is due, one at a time."""

    def __init__(self) -> None:
        self.memory = BufferedMemory(LIMIT, self._later)
        self._due: deque[Callable[[], None]] = deque()
        self.begun: list[str] = []

    def _later(self, callback: Callable[[], None]) -> None:
        self._due.append(callback)

    def wait(self, name: str, size: int, held: int = 0) -> Callable[[], None]:
        """Have a frame wait; return what cancels it."""
        frame = self.memory.wait(size, held, lambda: self.begun.append(name))
        return frame.cancel

    def run(self) -> list[str]:
        """Return the frames that began since the last call."""
        while self._due:
            self._due.popleft()()
        begun, self.begun = self.begun, []
        return begun


@pytest.fixture
def turns() -> Turns:
    return Turns()


def test_frames_begin_as_long_as_they_fit(turns: Turns) -> None:
    memory = turns.memory
    assert memory.begin(60)
    assert memory.begin(40)
    assert not memory.begin(1)
    assert memory.used_bytes == LIMIT


def test_frames_begin_in_the_order_in_which_they_came(turns: Turns) -> None:
    memory = turns.memory
    assert memory.begin(60)
    turns.wait("large", 50)
    assert not memory.begin(10), "it would fit, but another one is first"
    turns.wait("small", 10)
    assert turns.run() == []
    memory.finish(60)
    assert turns.run() == ["large", "small"]
    assert memory.used_bytes == 60


def test_what_a_waiting_frame_holds_is_counted_once(turns: Turns) -> None:
    memory = turns.memory
    memory.begin(90)
    turns.wait("other", 50, held=20)
    assert memory.used_bytes == 110
    memory.finish(90)
    assert turns.run() == ["other"]
    assert memory.used_bytes == 50
    memory.finish(50)
    assert memory.used_bytes == 0


def test_a_frame_that_never_fits_begins_alone(turns: Turns) -> None:
    memory = turns.memory
    memory.begin(10)
    turns.wait("huge", 500)
    assert turns.run() == []
    memory.finish(10)
    assert turns.run() == ["huge"]
    assert not memory.begin(1)
    memory.finish(500)
    assert memory.begin(1)


def test_answers_alone_do_not_stop_everything(turns: Turns) -> None:
    """Clients that do not read their answers may hold the memory for long."""
    memory = turns.memory
    memory.use(200)
    assert memory.begin(30), "one frame at a time"
    assert not memory.begin(30)
    turns.wait("next", 30)
    assert turns.run() == []
    memory.finish(30)
    assert turns.run() == ["next"]


def test_a_frame_that_is_not_read_for_now_does_not_stop_others(turns: Turns) -> None:
    memory = turns.memory
    memory.begin(80)
    turns.wait("other", 50)
    memory.park()
    assert turns.run() == ["other"]
    memory.unpark()
    turns.wait("third", 50)
    memory.finish(50)
    assert turns.run() == [], "the first one is read again"
    memory.finish(80)
    assert turns.run() == ["third"]


def test_a_frame_that_gives_up(turns: Turns) -> None:
    memory = turns.memory
    memory.begin(90)
    first = turns.wait("first", 50, held=5)
    turns.wait("second", 50)
    first()
    assert memory.used_bytes == 90
    memory.finish(90)
    assert turns.run() == ["second"]


def test_a_frame_that_gives_up_before_its_turn(turns: Turns) -> None:
    memory = turns.memory
    memory.begin(90)
    granted = turns.wait("granted", 50)
    memory.finish(90)
    granted()
    assert turns.run() == []
    assert memory.used_bytes == 0
    assert memory.begin(LIMIT)


def test_memory_is_tight_from_half_of_it_on_and_while_frames_wait(turns: Turns) -> None:
    memory = turns.memory
    tight = []
    for size in (50, 1):
        memory.use(size)
        tight.append(memory.is_tight)
    assert tight == [False, True]
    memory.release(51)
    memory.begin(10)
    turns.wait("huge", 500)
    assert memory.is_tight


def test_without_a_limit_bytes_are_only_counted() -> None:
    memory = BufferedMemory()
    assert memory.begin(1 << 40)
    assert memory.begin(1 << 40)
    assert memory.used_bytes == 2 << 40
    assert not memory.is_tight
