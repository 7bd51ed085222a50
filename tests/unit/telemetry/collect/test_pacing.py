"""Tests that a replay keeps the recording's gaps, on its own clock."""

from barnabas.telemetry.collect.pacing import MAX_SPEED, Pacer, repeated
from barnabas.telemetry.samples.readings import Reading, Refusal
from barnabas.telemetry.samples.sample_messages import Snapshot


class FakeClock:
    """A clock that moves only by sleeping."""

    def __init__(self) -> None:
        self.time_s = 100.0

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time_s += seconds


def snapshot(timestamp_ms: int) -> Snapshot:
    return Snapshot(timestamp_ms=timestamp_ms, gpu_id="G", device="", hostname="", model="")


BAD = Refusal(where="line 2", reason="bad", raw=b"x")


def recording() -> list[Reading]:
    return [snapshot(1_000), BAD, snapshot(1_100), snapshot(1_300)]


def due_times(speed: float, *times_ms: int) -> list[float]:
    clock = FakeClock()
    pacer = Pacer(speed, clock)
    found = []
    for time_ms in times_ms:
        pacer.wait_for(time_ms)
        found.append(round(clock.time_s - 100.0, 6))
    return found


def test_gaps_are_kept_at_real_time() -> None:
    assert due_times(1, 5_000, 6_000, 9_500) == [0, 1, 4.5]


def test_gaps_shrink_with_speed() -> None:
    assert due_times(10, 5_000, 6_000, 65_000) == [0, 0.1, 6]
    assert due_times(0.5, 0, 1_000) == [0, 2]


def test_the_past_is_due_at_once() -> None:
    assert due_times(1, 5_000, 4_000, 6_000) == [0, 0, 1]


def test_without_a_limit_no_client_waits() -> None:
    assert due_times(MAX_SPEED, 0, 10**9) == [0, 0]


def test_a_slow_sender_catches_up() -> None:
    clock = FakeClock()
    pacer = Pacer(1, clock)
    pacer.wait_for(0)
    clock.time_s += 10
    pacer.wait_for(4_000)
    assert clock.time_s == 110
    pacer.wait_for(11_000)
    assert clock.time_s == 111


def test_waiting_is_announced() -> None:
    naps: list[int] = []
    pacer = Pacer(1, FakeClock(), lambda: naps.append(1))
    pacer.wait_for(0)
    pacer.wait_for(1_000)
    assert len(naps) == 4


def times(found: list[Reading]) -> list[int]:
    return [each.timestamp_ms for each in found if isinstance(each, Snapshot)]


def test_rounds_follow_on_each_other() -> None:
    found = list(repeated(recording, 2))
    assert times(found) == [1_000, 1_100, 1_300, 1_500, 1_600, 1_800]
    assert [each for each in found if isinstance(each, Refusal)] == [BAD]


def test_a_recording_is_moved() -> None:
    assert times(list(repeated(recording, 1, start_ms=50_000))) == [50_000, 50_100, 50_300]
    assert times(list(repeated(recording, 2, end_ms=9_000)))[-1] == 9_000
    assert times(list(repeated(recording))) == [1_000, 1_100, 1_300]


def test_nothing_is_repeated_of_nothing() -> None:
    assert list(repeated(lambda: [BAD], 3, start_ms=0)) == [BAD]
