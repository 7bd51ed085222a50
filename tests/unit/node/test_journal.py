"""The metadata journal: nothing is answered before it is safe, nothing committed is cut away."""

from collections.abc import Callable
from random import Random

import pytest

from barnabas.effects import Effect, Flush
from barnabas.metadata.records import ClusterFormed, ProducerIdsReserved
from barnabas.model.errors import StorageError
from barnabas.node import journal as journals
from barnabas.node.journal import Journal
from barnabas.storage.flush import carry_out
from barnabas.testing.memory_disk import MemoryDisk

LOG = "data/__cluster_metadata/00000000000000000000.log"


def opened(disk: MemoryDisk) -> tuple[Journal, list[Effect]]:
    outbox: list[Effect] = []
    journal = Journal(disk, "data", outbox)
    journal.open()
    return journal, outbox


def reserve(journal: Journal, number: int, action: Callable[[], None] = lambda: None) -> None:
    journal.propose([ProducerIdsReserved(next_producer_id=number)], 0, action)


def sync(disk: MemoryDisk, outbox: list[Effect]) -> None:
    (flush,) = outbox
    outbox.clear()
    assert isinstance(flush, Flush)
    carry_out(disk, flush.task)
    flush.done()


def committed(*numbers: int) -> MemoryDisk:
    """Return a disk with a journal to which these were committed, one by one."""
    disk = MemoryDisk()
    journal, _ = opened(disk)
    journal.commit_now([ClusterFormed(cluster_id="name")], 0)
    for number in numbers:
        journal.commit_now([ProducerIdsReserved(next_producer_id=number)], 0)
    return disk


def test_what_was_committed_is_found_again() -> None:
    journal, _ = opened(committed(7))
    assert (journal.image.cluster_id, journal.image.next_producer_id) == ("name", 7)


def test_an_answer_waits_for_the_sync() -> None:
    disk = MemoryDisk()
    journal, outbox = opened(disk)
    answers: list[int] = []
    reserve(journal, 1, lambda: answers.append(1))
    assert journal.image.next_producer_id == 1
    assert answers == []
    sync(disk, outbox)
    assert answers == [1]
    assert outbox == []


def test_changes_that_arrive_during_a_sync_share_the_next() -> None:
    disk = MemoryDisk()
    journal, outbox = opened(disk)
    answers: list[int] = []
    for number in (1, 2, 3):
        reserve(journal, number, lambda n=number: answers.append(n))  # type: ignore[misc]
    sync(disk, outbox)
    assert answers == [1]
    sync(disk, outbox)
    assert answers == [1, 2, 3]
    assert outbox == []


def test_a_change_of_nothing_waits_for_those_before_it() -> None:
    disk = MemoryDisk()
    journal, outbox = opened(disk)
    answers: list[str] = []
    journal.propose([], 0, lambda: answers.append("at once"))
    assert answers == ["at once"]
    reserve(journal, 1, lambda: answers.append("change"))
    journal.propose([], 0, lambda: answers.append("nothing"))
    assert answers == ["at once"]
    sync(disk, outbox)
    assert answers == ["at once", "change", "nothing"]


def test_a_full_disk_changes_nothing() -> None:
    disk = committed(1)
    journal, outbox = opened(disk)
    disk.room = 20
    with pytest.raises(OSError, match="No space"):
        reserve(journal, 99)
    assert (journal.image.next_producer_id, outbox) == (1, [])
    disk.room = None
    reserve(journal, 5)
    sync(disk, outbox)
    assert opened(disk)[0].image.next_producer_id == 5


@pytest.mark.parametrize("seed", range(25))
def test_a_torn_tail_that_nobody_was_promised_is_dropped(seed: int) -> None:
    disk = committed(1)
    journal, _ = opened(disk)
    reserve(journal, 2)
    reserve(journal, 3)
    disk.power_cut(Random(seed))
    assert opened(disk)[0].image.next_producer_id in (1, 2, 3)


def test_damage_to_what_was_committed_stops_the_start() -> None:
    """Whatever bit is flipped: the metadata is whole, or the start refuses and changes nothing."""
    pristine = committed(1, 2)
    journal, _ = opened(pristine)
    journal.commit_now([ProducerIdsReserved(next_producer_id=3)], 0)
    journal.close()
    content = pristine.read_bytes(LOG)
    refused = 0
    for bit in range(0, len(content) * 8, 7):
        disk = committed(1, 2)
        journal, _ = opened(disk)
        journal.commit_now([ProducerIdsReserved(next_producer_id=3)], 0)
        journal.close()
        disk.flip(LOG, bit)
        damaged = disk.read_bytes(LOG)
        try:
            image = opened(disk)[0].image
        except StorageError as error:
            problem = str(error)
        else:
            assert (image.cluster_id, image.next_producer_id) == ("name", 3)
            continue
        assert "restore data/__cluster_metadata from a backup" in problem
        assert disk.read_bytes(LOG) == damaged
        refused += 1
    assert refused > len(content) * 8 // 7 * 0.9


def test_damage_before_a_later_commit_stops_the_start_even_after_a_crash() -> None:
    disk = committed(1, 2, 3)
    disk.flip(LOG, disk.size(LOG) // 3 * 8)
    with pytest.raises(StorageError, match="was committed"):
        opened(disk)


def test_a_log_shorter_than_at_the_stop_stops_the_start() -> None:
    disk = committed(1, 2)
    journal, _ = opened(disk)
    journal.close()
    disk.cut(LOG, disk.size(LOG) - 1)
    with pytest.raises(StorageError, match="is damaged"):
        opened(disk)
    disk.cut(LOG, 0)
    with pytest.raises(StorageError, match="only that up to 0 can be read"):
        opened(disk)


def test_a_damaged_note_of_the_end_stops_nothing() -> None:
    disk = committed(1, 2)
    journal, _ = opened(disk)
    journal.close()
    disk.flip("data/__cluster_metadata/committed-end", 1)
    assert opened(disk)[0].image.next_producer_id == 2


def test_a_long_log_is_written_anew_and_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_AFTER", 3)
    disk = committed(*range(1, 10))
    for round_number in range(1, 4):
        before = disk.size(LOG)
        journal, _ = opened(disk)
        assert disk.size(LOG) < before
        assert disk.list("data") == ["__cluster_metadata"]
        for number in range(6):
            number += round_number * 100  # noqa: PLW2901
            journal.commit_now([ProducerIdsReserved(next_producer_id=number)], 0)
        if round_number % 2:
            journal.close()
        again, _ = opened(disk)
        assert again.image.next_producer_id == round_number * 100 + 5
        again.commit_now([ProducerIdsReserved(next_producer_id=n) for n in range(9)], 0)


def test_a_rewrite_that_a_crash_left_behind_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_AFTER", 3)
    disk = committed(*range(1, 10))
    for name in ("old", "new"):
        disk.make_folder(f"data/__cluster_metadata.{name}")
        disk.write_atomic(f"data/__cluster_metadata.{name}/{0:020d}.log", b"leftover")
    assert opened(disk)[0].image.next_producer_id == 9
    assert disk.list("data") == ["__cluster_metadata"]
