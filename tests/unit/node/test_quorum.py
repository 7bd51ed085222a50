"""The node's share of the quorum, alone: nothing is answered before it is safe, nothing committed
is cut away, and only what was committed is in the image.
"""

from random import Random

import pytest

from barnabas.metadata.records import ClusterFormed, ProducerIdsReserved
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.pending import Pending
from barnabas.testing.lone_quorum import LoneQuorum
from barnabas.testing.memory_disk import MemoryDisk

LOG = "data/__cluster_metadata/00000000000000000000.log"


def reserved(number: int) -> ProducerIdsReserved:
    return ProducerIdsReserved(next_producer_id=number)


def committed(*numbers: int) -> MemoryDisk:
    """Return a disk with a quorum to which these were committed, one by one."""
    disk = MemoryDisk()
    lone = LoneQuorum(disk)
    lone.commit_now(ClusterFormed(cluster_id="name"))
    for number in numbers:
        lone.commit_now(reserved(number))
    return disk


def is_answered(pending: Pending[bool]) -> bool:
    answers: list[bool] = []
    if pending.done:
        pending.when_done(answers.append)
    return answers == [True]


def test_what_was_committed_is_found_again() -> None:
    image = LoneQuorum(committed(7)).image
    assert (image.cluster_id, image.next_producer_id) == ("name", 7)


def test_an_answer_and_the_image_wait_for_the_sync_and_the_draft_does_not() -> None:
    lone = LoneQuorum(MemoryDisk())
    answer = lone.propose(reserved(1))
    assert lone.quorum.draft is not None
    assert (lone.quorum.draft.next_producer_id, lone.image.next_producer_id) == (1, 0)
    assert not answer.done
    lone.sync()
    assert is_answered(answer)
    assert lone.image.next_producer_id == 1
    assert lone.outbox == []


def test_changes_that_arrive_during_a_sync_share_the_next() -> None:
    lone = LoneQuorum(MemoryDisk())
    answers = [lone.propose(reserved(number)) for number in (1, 2, 3)]
    lone.sync()
    assert [answer.done for answer in answers] == [True, False, False]
    lone.sync()
    assert all(is_answered(answer) for answer in answers)
    assert lone.outbox == []


def test_a_change_of_nothing_waits_for_those_before_it() -> None:
    lone = LoneQuorum(MemoryDisk())
    assert is_answered(lone.propose())
    change, nothing = lone.propose(reserved(1)), lone.propose()
    assert (change.done, nothing.done) == (False, False)
    lone.sync()
    assert is_answered(change)
    assert is_answered(nothing)


def test_a_full_disk_changes_nothing() -> None:
    disk = committed(1)
    lone = LoneQuorum(disk)
    disk.room = 20
    with pytest.raises(ApiError, match="No space") as refused:
        lone.propose(reserved(99))
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert lone.quorum.draft is not None
    assert (lone.quorum.draft.next_producer_id, lone.outbox) == (1, [])
    disk.room = None
    lone.propose(reserved(5))
    lone.sync()
    assert LoneQuorum(disk).image.next_producer_id == 5


def test_who_loses_control_tells_those_who_wait() -> None:
    lone = LoneQuorum(MemoryDisk())
    answer = lone.propose(reserved(1))
    errors: list[Exception] = []
    answer.when_done(lambda _: None, errors.append)
    lone.quorum.resigned()
    (error,) = errors
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.NOT_CONTROLLER
    with pytest.raises(ApiError, match="another node controls"):
        lone.propose(reserved(2))


@pytest.mark.parametrize("seed", range(25))
def test_a_torn_tail_that_nobody_was_promised_is_dropped(seed: int) -> None:
    disk = committed(1)
    lone = LoneQuorum(disk)
    lone.propose(reserved(2))
    lone.propose(reserved(3))
    disk.power_cut(Random(seed))
    assert LoneQuorum(disk).image.next_producer_id in (1, 2, 3)


def stopped() -> MemoryDisk:
    disk = committed(1, 2)
    lone = LoneQuorum(disk)
    lone.commit_now(reserved(3))
    lone.close()
    return disk


def test_damage_to_what_was_committed_stops_the_start() -> None:
    """Whatever bit is flipped: the metadata is whole, or the start refuses and changes nothing."""
    content = stopped().read_bytes(LOG)
    refused = 0
    for bit in range(0, len(content) * 8, 7):
        disk = stopped()
        disk.flip(LOG, bit)
        damaged = disk.read_bytes(LOG)
        try:
            image = LoneQuorum(disk).image
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
        LoneQuorum(disk)


def test_a_log_shorter_than_at_the_stop_stops_the_start() -> None:
    disk = stopped()
    disk.cut(LOG, disk.size(LOG) - 1)
    with pytest.raises(StorageError, match="is damaged"):
        LoneQuorum(disk)
    disk.cut(LOG, 0)
    with pytest.raises(StorageError, match="only that up to 0 can be read"):
        LoneQuorum(disk)


def test_a_damaged_note_of_the_end_stops_nothing() -> None:
    disk = stopped()
    disk.flip("data/__cluster_metadata/committed-end", 1)
    assert LoneQuorum(disk).image.next_producer_id == 3


def test_a_long_log_is_summed_up_again_and_again() -> None:
    disk = committed(*range(1, 10))
    for round_number in range(1, 4):
        lone = LoneQuorum(disk, snapshot_after_records=3)
        for number in range(6):
            lone.commit_now(reserved(round_number * 100 + number))
        assert any(name.endswith(".checkpoint") for name in disk.list("data/__cluster_metadata"))
        if round_number % 2:
            lone.close()
        again = LoneQuorum(disk)
        assert again.image.next_producer_id == round_number * 100 + 5
        assert again.image.cluster_id == "name"
        again.commit_now(*(reserved(number) for number in range(9)))
