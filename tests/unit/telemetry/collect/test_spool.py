"""Tests messages on disk: their order, their limit, and what a crash leaves."""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.collect.spool import Letter, Spool, SpoolError, pack, unpack

LIMIT = 8_000


def letter(number: int, size: int = 80) -> Letter:
    return Letter("t", b"GPU-1", str(number).encode().rjust(size), [("source", b"test")])


Open = Callable[[], Spool]


@pytest.fixture
def open_spool(tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Spool(tmp_path, LIMIT)))


def drained(spool: Spool) -> list[int]:
    found = []
    while letters := spool.oldest():
        found += [int(each.value) for each in letters]
        spool.remove()
    return found


@given(
    st.lists(
        st.builds(
            Letter,
            st.text(min_size=1, max_size=5),
            st.none() | st.binary(max_size=5),
            st.binary(max_size=20),
            st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3),
        ),
        max_size=5,
    ),
    st.integers(0, 200),
)
def test_a_segment_is_read_up_to_where_it_was_cut_off(letters: list[Letter], size: int) -> None:
    records = [pack(each) for each in letters]
    assert list(unpack(b"".join(records))) == letters
    cut = b"".join(records)[:size]
    whole = [
        each
        for index, each in enumerate(letters)
        if len(b"".join(records[: index + 1])) <= len(cut)
    ]
    assert list(unpack(cut)) == whole


def test_messages_come_back_in_order_in_this_process_and_the_next(
    open_spool: Open, tmp_path: Path
) -> None:
    spool = open_spool()
    for number in range(30):
        assert spool.append(letter(number)) == 0
    assert [int(each.value) for each in spool.oldest()] == list(range(len(spool.oldest())))
    spool.remove()
    left = spool.messages
    assert 0 < left < 30
    spool.close()
    again = open_spool()
    assert (again.messages, again.damaged_bytes) == (left, 0)
    again.append(letter(30))
    assert drained(again) == list(range(30 - left, 31))
    assert (again.messages, again.size) == (0, 0)
    assert list(tmp_path.glob("*.spool")) == []


def test_a_full_spool_drops_the_oldest_and_says_how_many(open_spool: Open, tmp_path: Path) -> None:
    spool = open_spool()
    dropped = sum(spool.append(letter(number)) for number in range(200))
    assert spool.size <= LIMIT
    assert spool.size == sum(path.stat().st_size for path in tmp_path.glob("*.spool"))
    assert dropped + spool.messages == 200
    assert drained(spool) == list(range(dropped, 200))
    assert spool.append(letter(1, size=LIMIT)) == 1


def test_what_is_being_sent_is_not_dropped(open_spool: Open) -> None:
    spool = open_spool()
    spool.append(letter(0))
    sending = spool.oldest()
    for number in range(1, 200):
        spool.append(letter(number))
    assert spool.oldest() == sending
    assert spool.remove() == 1


def test_a_torn_end_is_reported_and_the_rest_is_used(open_spool: Open, tmp_path: Path) -> None:
    spool = open_spool()
    for number in range(3):
        spool.append(letter(number))
    spool.close()
    (path,) = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes()[:-5])
    again = open_spool()
    assert again.damaged_bytes > 0
    assert drained(again) == [0, 1]


def test_one_process_holds_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path, LIMIT)
    with pytest.raises(SpoolError, match="Another collector"):
        Spool(tmp_path, LIMIT)
    spool.close()
    Spool(tmp_path, LIMIT).close()
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match="cannot be a spool"):
        Spool(tmp_path / "file", LIMIT)


def test_a_full_disk_is_reported_and_leaves_no_partial_record(
    open_spool: Open, tmp_path: Path
) -> None:
    spool = open_spool()
    assert spool.append(letter(0)) == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (spool.size + 10, hard))
    try:
        assert spool.append(letter(1)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "no space left" in spool.trouble
    assert spool.append(letter(2)) == 0
    assert drained(spool) == [0, 2]
    shutil.rmtree(tmp_path)
    assert spool.append(letter(3)) == 1
    assert "No such file" in spool.trouble
