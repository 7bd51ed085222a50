"""Tests that ledgers survive a round trip, and that only complete rows and lines count."""

from pathlib import Path

from tests.support.clusters.cluster_ledger import (
    SHIFT,
    Diary,
    Fate,
    RowFile,
    Stamp,
    count_rows,
    in_transaction,
    read_acks,
    read_diary,
    read_reading,
    read_stamp,
    sender,
    stamped,
)


def test_a_stamp_survives_its_padding() -> None:
    stamp = Stamp(7, Fate.ABORT, 12, 1 << 40)
    value = stamped(stamp, 100)
    assert len(value) == 100
    assert read_stamp(value) == stamp


def test_acknowledgements_by_partition(tmp_path: Path) -> None:
    path = tmp_path / "acks"
    rows = RowFile(path)
    for number in range(5):
        rows.add(2 << SHIFT | number, 10 + number, 1000 + number)
    rows.add(0, 4, 1)
    rows.close()
    found = read_acks(path)
    assert list(found[2].numbers) == [0, 1, 2, 3, 4]
    assert list(found[2].offsets) == [10, 11, 12, 13, 14]
    assert list(found[2].times_us) == [1000, 1001, 1002, 1003, 1004]
    assert list(found[0].offsets) == [4]
    assert count_rows(path) == 6


def test_a_row_that_was_cut_off_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "acks"
    rows = RowFile(path)
    rows.add(0, 0, 0)
    rows.add(1, 1, 1)
    rows.close()
    path.write_bytes(path.read_bytes()[:-3])
    assert count_rows(path) == 1
    assert list(read_acks(path)[0].numbers) == [0]


def test_a_ledger_that_was_never_written(tmp_path: Path) -> None:
    assert count_rows(tmp_path / "none") == 0


def test_readings_by_partition(tmp_path: Path) -> None:
    path = tmp_path / "shown"
    rows = RowFile(path)
    rows.add(1 << SHIFT | 99, sender(3, 8), in_transaction(5, Fate.COMMIT))
    rows.close()
    found = read_reading(path)[1]
    assert list(found.offsets) == [99]
    assert list(found.senders) == [sender(3, 8)]
    assert list(found.transactions) == [in_transaction(5, Fate.COMMIT)]


def test_a_line_that_was_cut_off_ends_a_diary(tmp_path: Path) -> None:
    path = tmp_path / "diary"
    diary = Diary(path)
    diary.note("begun", transaction=1)
    diary.note("committed", transaction=1)
    diary.close()
    path.write_text(path.read_text()[:-4])
    (line,) = read_diary(path)
    assert (line["event"], line["transaction"]) == ("begun", 1)
